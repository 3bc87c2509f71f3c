"""What a suite is: cases, roles, slices, freezing."""
