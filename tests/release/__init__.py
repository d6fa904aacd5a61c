"""What make dist makes and make audit looks at."""
