package preset

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// pipIndex is pip's default index, and pipFiles the host that its pages point
// to for the files themselves.
const (
	pipIndex = "https://pypi.org/simple"
	pipFiles = "https://files.pythonhosted.org"
)

// readPip follows pip's order, in which the environment wins over the site's,
// the user's and the global file (pip's "Configuration" page). Extra indexes
// add up.
func readPip(r *reader) {
	index, from := "", ""
	set := func(value, source string) {
		if value != "" && index == "" {
			index, from = value, source
		}
	}
	for _, name := range []string{"PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"} {
		set(r.env.Getenv(name), name)
	}
	var more [][2]string
	for _, name := range []string{"PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_EXTRA_INDEX_URL"} {
		more = append(more, [2]string{r.env.Getenv(name), name})
	}
	for _, path := range r.pipFiles() {
		for _, s := range ini(r.file(path)) {
			if !slices.Contains([]string{"global", "install", "download", "wheel"}, s.name) {
				continue
			}
			set(s.values["index-url"], path)
			set(s.values["index_url"], path)
			more = append(more, [2]string{s.values["extra-index-url"], path}, [2]string{s.values["find-links"], path})
		}
	}
	if index == "" {
		index, from = pipIndex, defaults
	}
	r.allowIndex(index, from)
	for _, one := range more {
		for _, text := range strings.Fields(one[0]) {
			if strings.Contains(text, "://") && !strings.HasPrefix(text, "file:") {
				r.allowIndex(text, one[1])
			}
		}
	}
}

func (r *reader) allowIndex(text, from string) {
	r.allow(text, from, "")
	if parsed, err := url.Parse(text); err == nil && (parsed.Hostname() == "pypi.org" || parsed.Hostname() == "test.pypi.org") {
		files := pipFiles
		if parsed.Hostname() == "test.pypi.org" {
			files = "https://test-files.pythonhosted.org"
		}
		r.allow(files, from, "")
	}
}

// pipFiles lists pip's files, the strongest first.
func (r *reader) pipFiles() []string {
	var files []string
	switch named := r.env.Getenv("PIP_CONFIG_FILE"); named {
	case "":
	case "/dev/null": // pip reads no file at all then
		return nil
	default:
		files = append(files, named)
	}
	if dir := r.env.Getenv("VIRTUAL_ENV"); dir != "" {
		files = append(files, filepath.Join(dir, "pip.conf"))
	}
	return append(files, r.config("pip", "pip.conf"), r.home("Library", "Application Support", "pip", "pip.conf"),
		r.home(".pip", "pip.conf"), r.root("etc/xdg/pip/pip.conf"), r.root("etc/pip.conf"))
}
