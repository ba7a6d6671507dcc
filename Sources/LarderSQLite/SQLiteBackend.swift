// The backend follows.
