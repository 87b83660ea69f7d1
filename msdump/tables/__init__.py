"""Tables for people: by columns, as HTML, with untrusted text made harmless."""
