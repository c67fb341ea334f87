package template

import (
	"path"
	"strings"
)

// compose finds services of a compose file and how they run without containers.
func (l *looker) compose() {
	file := l.has("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
	if file == "" {
		return
	}
	text, ok := l.read(file)
	if !ok {
		return
	}
	services := composed(text)
	if len(services) > 0 {
		l.found(file + ": services")
	}
	for _, one := range services {
		why := one.name + " of " + file + ", " + one.image
		switch base, _, _ := strings.Cut(path.Base(one.image), ":"); base {
		case "postgres", "postgis", "pgvector", "timescaledb":
			l.serve(postgres(serviceName(one.name), why, ""), "postgres")
		case "redis", "valkey":
			l.serve(service{name: serviceName(one.name), why: why, command: []string{base + "-server", "--save", "", "--dir", "/tmp"}, ready: "{ port = 6379 }"}, base+"-server")
		case "memcached":
			l.serve(service{name: serviceName(one.name), why: why, command: []string{"memcached", "-l", "127.0.0.1"}, ready: "{ port = 11211 }"}, "memcached")
		case "":
		default:
			l.note("service " + why + ": how it runs without its image is not known; see container.services")
		}
	}
}

// serve adds a service, as a comment if its program is not installed.
func (l *looker) serve(s service, program string) {
	if s.name == "" {
		return
	}
	if !l.installed(program) {
		s.off = program + " is not installed on this machine; take the # away once it is"
	}
	l.Services = append(l.Services, s)
}

func postgres(name, why, off string) service {
	return service{
		name: name, why: why, off: off, ready: `{ command = ["pg_isready", "-h", "/tmp"] }`,
		command: []string{"sh", "-c", `[ -d "$HOME/pg" ] || initdb -D "$HOME/pg" -U postgres -A trust; exec postgres -D "$HOME/pg" -k /tmp`},
	}
}

// serviceName returns a name as container.services takes it; "" if nothing is left.
func serviceName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	return strings.Trim(name[:min(len(name), 32)], "-_")
}

type composeService struct{ name, image string }

// composed reads names and images of services, by indentation: that is all we
// need of the file, and it handles only the YAML that people write there.
func composed(text string) []composeService {
	var found []composeService
	in, depth := false, -1
	for line := range strings.Lines(text) {
		content := strings.TrimSpace(line)
		if content == "" || strings.HasPrefix(content, "#") {
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		key, value, ok := strings.Cut(content, ":")
		switch {
		case indent == 0:
			in, depth = key == "services", -1
		case !in || !ok:
		case depth == -1 || indent == depth:
			depth = indent
			found = append(found, composeService{name: strings.Trim(key, `"'`)})
		case indent > depth && key == "image":
			value, _, _ = strings.Cut(value, " #")
			found[len(found)-1].image = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return found
}
