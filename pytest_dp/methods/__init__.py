"""Methods of papers, one module each, on the parts that betting uses too; membership games."""
