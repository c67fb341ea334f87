package image

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
)

// authorize answers a registry's challenge (distribution-spec, "token
// authentication"; RFC 7235) and returns a value for the Authorization header.
// The user's `docker login` or `podman login` is used; it stays in this process
// and goes to the registry's own token server only.
func (r *registry) authorize(ctx context.Context, challenges []string) (string, error) {
	basic := loginFor(ctx, r.source.Host)
	for _, challenge := range challenges {
		scheme, parameters := parseChallenge(challenge)
		switch scheme {
		case "basic":
			if basic != "" {
				return basic, nil
			}
		case "bearer":
			return r.token(ctx, parameters, basic)
		}
	}
	return "", fault.New(fault.Denied, "cannot pull %s: %s wants a login", r.source, r.source.Host).
		WithHint("docker login %s", r.source.Host)
}

func (r *registry) token(ctx context.Context, challenge map[string]string, basic string) (string, error) {
	realm, err := url.Parse(challenge["realm"])
	if err != nil || realm.Host == "" || realm.Scheme != "https" && !(realm.Scheme == "http" && loopback(realm.Host) && loopback(apiHost(r.source.Host))) {
		return "", fault.New(fault.Denied, "cannot pull %s: %s wants the login sent to %q", r.source, r.source.Host, challenge["realm"])
	}
	query := realm.Query()
	query.Set("scope", "repository:"+r.source.Name+":pull")
	if challenge["service"] != "" {
		query.Set("service", challenge["service"])
	}
	realm.RawQuery = query.Encode()
	answer, err := r.ask(ctx, realm.String(), basic)
	if err != nil {
		return "", fault.New(fault.Unavailable, "cannot pull %s: the token server %s does not answer", r.source, realm.Host)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		return "", r.refused(answer.StatusCode)
	}
	content, err := readDocument(answer.Body)
	var given struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err == nil {
		err = json.Unmarshal(content, &given)
	}
	if given.Token == "" {
		given.Token = given.AccessToken
	}
	if err != nil || given.Token == "" {
		return "", fault.New(fault.Unavailable, "cannot pull %s: the token server %s gives no token", r.source, realm.Host)
	}
	return "Bearer " + given.Token, nil
}

// parseChallenge reads one WWW-Authenticate header with one challenge, as
// registries send it: a scheme, then key="value" with commas between.
func parseChallenge(header string) (scheme string, parameters map[string]string) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	parameters = map[string]string{}
	for rest != "" {
		var key, value string
		if key, rest, _ = strings.Cut(rest, "="); key == "" {
			break
		}
		if strings.HasPrefix(rest, `"`) {
			value, rest, _ = strings.Cut(rest[1:], `"`)
			_, rest, _ = strings.Cut(rest, ",")
		} else {
			value, rest, _ = strings.Cut(rest, ",")
		}
		parameters[strings.ToLower(strings.Trim(key, " ,"))] = strings.TrimSpace(value)
	}
	return strings.ToLower(scheme), parameters
}

// logins is the part of docker's config.json, and podman's auth.json, that is
// about logins.
type logins struct {
	Auths map[string]struct {
		Auth string `json:"auth"`
	} `json:"auths"`
	Helpers map[string]string `json:"credHelpers"`
	Store   string            `json:"credsStore"`
}

// loginFor finds the user's login at a registry, as a Basic authorization; ""
// when there is none. An unreadable file counts as none: most images need no
// login, and for the others the registry's refusal says what to type.
func loginFor(ctx context.Context, host string) string {
	who := caller.Of(ctx)
	files := []string{filepath.Join(who.Home, ".docker", "config.json"), filepath.Join(who.Home, ".config", "containers", "auth.json")}
	if dir := who.Get("DOCKER_CONFIG"); dir != "" {
		files[0] = filepath.Join(dir, "config.json")
	}
	if dir := who.Get("XDG_RUNTIME_DIR"); dir != "" {
		files = append(files, filepath.Join(dir, "containers", "auth.json"))
	}
	names := []string{host}
	if host == dockerHub {
		names = append(names, "https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io")
	}
	for _, file := range files {
		var known logins
		// Root with another user's HOME would run the helper that this user names.
		if ownership.Check(file) != nil {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(content, &known) != nil {
			continue
		}
		for _, name := range names {
			if _, err := base64.StdEncoding.DecodeString(known.Auths[name].Auth); err == nil && known.Auths[name].Auth != "" {
				return "Basic " + known.Auths[name].Auth
			}
			helper := known.Helpers[name]
			if helper == "" {
				helper = known.Store
			}
			if login := askHelper(ctx, helper, name); login != "" {
				return login
			}
		}
	}
	return ""
}

// askHelper runs the user's own credential helper
// (github.com/docker/docker-credential-helpers, "get").
func askHelper(ctx context.Context, helper, name string) string {
	if helper == "" || strings.ContainsRune(helper, '/') {
		return ""
	}
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "docker-credential-"+helper, "get")
	cmd.Stdin = strings.NewReader(name)
	cmd.Env = append([]string{}, caller.Of(ctx).Env...)
	var out bytes.Buffer
	cmd.Stdout = &out
	var given struct{ Username, Secret string }
	if cmd.Run() != nil || json.Unmarshal(out.Bytes(), &given) != nil || given.Username == "" || given.Username == "<token>" {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(given.Username+":"+given.Secret))
}
