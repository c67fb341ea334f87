package preset

import "strings"

// What the go command uses without any configuration (go help goproxy).
const (
	goProxy = "https://proxy.golang.org,direct"
	goSumDB = "sum.golang.org"
)

func readGo(r *reader) {
	proxy, from := r.goSetting("GOPROXY")
	if proxy == "" {
		proxy, from = goProxy, defaults
	}
	direct := false
	proxies := 0
	for _, one := range strings.FieldsFunc(proxy, func(c rune) bool { return c == ',' || c == '|' }) {
		switch one = strings.TrimSpace(one); {
		case one == "direct":
			direct = true
		case one == "off" || one == "":
		case strings.HasPrefix(one, "file:"):
			r.problem("GOPROXY names a directory of this machine")
		default:
			r.allow(one, from, "GET,HEAD")
			r.goStorage(one)
			proxies++
		}
	}
	if direct && proxies == 0 {
		r.from(from)
		r.problem("GOPROXY is direct: modules come from their own hosts, which have to be allowed one by one")
	}
	r.goSum()
}

// goStorage adds the place where the public mirror sends clients for large
// modules (golang/go#52908). Anyone can have a bucket on that host, so only
// the mirror's own is named, by a rule that makes the keeper look into TLS.
func (r *reader) goStorage(proxy string) {
	if strings.HasPrefix(proxy, "https://proxy.golang.org") {
		r.preset.Rules = append(r.preset.Rules, "GET,HEAD https://storage.googleapis.com/proxy-golang-org-prod/")
	}
}

// goSum adds the checksum database: "name", "name+key" or "name+key URL". A
// proxy may carry it too, but the go command asks the database itself when the
// proxy does not.
func (r *reader) goSum() {
	sum, from := r.goSetting("GOSUMDB")
	if sum == "" {
		sum, from = goSumDB, defaults
	}
	if sum == "off" {
		return
	}
	name, address, given := strings.Cut(sum, " ")
	if !given {
		name, _, _ = strings.Cut(name, "+")
		address = "https://" + name
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	r.allow(address, from, "GET,HEAD")
}

// goSetting reads a variable as the go command does: the environment, then the
// file that go env -w writes.
func (r *reader) goSetting(name string) (value, from string) {
	if value := r.env.Getenv(name); value != "" {
		return value, name
	}
	path := r.env.Getenv("GOENV")
	switch path {
	case "off":
		return "", ""
	case "":
		path = r.config("go", "env")
	}
	for _, candidate := range []string{path, r.home("Library", "Application Support", "go", "env")} {
		for _, s := range ini(r.file(candidate)) {
			if value := s.values[name]; value != "" {
				return value, candidate
			}
		}
	}
	return "", ""
}
