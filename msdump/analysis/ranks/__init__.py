"""Many ranks as one job: a table part for each rank and step, questions about all of them, equality by construction."""
