"""Row identity: which rows count, what of the text each stands for, and how windows divide a long text."""
