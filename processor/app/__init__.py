"""The application: interpret and reduce, and the process that runs them."""
