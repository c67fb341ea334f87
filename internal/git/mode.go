package git

// Modes of tree entries, gitformat-index(5).
const (
	ModeFile       = 0o100644
	ModeExecutable = 0o100755
	ModeLink       = 0o120000
	ModeGitlink    = 0o160000
	ModeTree       = 0o040000
)

func Octal(s string) uint32 {
	var v uint32
	for _, c := range []byte(s) {
		v = v<<3 | uint32(c-'0')&7
	}
	return v
}
