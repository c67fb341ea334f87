package projects_test

// project is a public project, with what its authors would type.
type project struct {
	name   string
	source string // "npm", "go" or "debian", a colon, and what that calls it
	needs  []string
	// prepare runs in the checkout first. Packages of npm are published without their
	// .gitignore and lock file. In other sources a .gitignore may name files that
	// their authors added by force.
	prepare string
	setup   string // what init must write; empty for nothing
	tests   string
	sample  bool // is tried without make test-projects too
}

const (
	ignore = "printf '%s\\n' node_modules/ .venv/ __pycache__/ '*.egg-info/' >.gitignore"
	lock   = ignore + "; npm install --package-lock-only --ignore-scripts --no-audit --no-fund --no-update-notifier"
	// unlocked has git ignore the lock file that npm writes, as libraries without one do:
	// a golden holds only what git ignores.
	unlocked = "; echo package-lock.json >>.gitignore"
	tape     = "node_modules/.bin/tape test/*.js"
)

// projects are ten real ones. The Python one has no dependencies, and none is in
// Rust: the tests use npm, the Go proxy and Debian, and neither PyPI nor crates.io.
var projects = []project{
	{name: "wordwrap", source: "npm:wordwrap@1.0.0", needs: npm, prepare: ignore + unlocked, setup: "npm install", tests: tape},
	{name: "quote-stream", source: "npm:quote-stream@1.0.2", needs: npm, prepare: lock, setup: "npm ci", tests: tape},
	{name: "minimist", source: "npm:minimist@1.2.8", needs: npm, prepare: lock, setup: "npm ci", tests: "node_modules/.bin/nyc " + tape},
	{name: "concat-map", source: "npm:concat-map@0.0.1", needs: npm, prepare: lock, setup: "npm ci", tests: tape, sample: true},
	{name: "text-table", source: "npm:text-table@0.2.0", needs: npm, prepare: lock + "; npm shrinkwrap --silent", setup: "npm ci", tests: tape},
	{name: "uuid", source: "go:github.com/google/uuid@v1.6.0", needs: golang, tests: "go test ./..."},
	{name: "color", source: "go:github.com/fatih/color@v1.17.0", needs: golang, setup: "go mod download", tests: "go test ./...", sample: true},
	{name: "toml", source: "go:github.com/pelletier/go-toml/v2@v2.2.3", needs: golang, prepare: "git add --force testdata", setup: "go mod download", tests: "go test ./..."},
	{name: "pyasn1", source: "debian:pyasn1", needs: python, prepare: ignore, setup: "python3 -m venv .venv && .venv/bin/pip install -e .", tests: ".venv/bin/python -m unittest -q tests.__main__.suite", sample: true},
	{name: "zlib", source: "debian:zlib", needs: []string{"gcc", "make", "dpkg-source"}, tests: "./configure >/dev/null && make -s test"},
}

var (
	npm    = []string{"npm", "node"}
	golang = []string{"go"}
	python = []string{"/usr/bin/python3", "dpkg-source"} // whose pip fetches nothing for a setup.py without dependencies
)
