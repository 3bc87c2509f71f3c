"""What a release is: its file, its model folder, its meaning and the ID that follows from it."""
