package layer

// Stays is content that cannot be committed as it is; the path stays as it
// was last committed.
type Stays struct {
	Why     string
	Passing bool // the next commit may well take it
}

func (e Stays) Error() string { return e.Why }
