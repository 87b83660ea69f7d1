"""Where the files of a dump lie: on the disk, inside packs, in object stores. Readers open all of them the same way."""
