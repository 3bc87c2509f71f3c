"""What leaves on PASS: a folder that the deployment process can verify without this package's store."""
