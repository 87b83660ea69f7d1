"""A dump to look at: its pages as data (docs/viewer-data.md), and the front end that draws them."""
