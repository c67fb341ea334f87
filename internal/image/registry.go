package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// registry is one repository of a registry (distribution-spec 1.1, "Pull").
// Its methods may be called by several goroutines.
type registry struct {
	source Source
	client *http.Client
	base   string // scheme and host of the API

	mu    sync.Mutex
	login string // value of the Authorization header; "" asks anonymously
}

// registryPatience is how long a registry may think before it answers. A layer
// takes as long as the connection needs.
const registryPatience = time.Minute

// apiHost is where a registry's API is; docker.io is only a name.
func apiHost(host string) string {
	if host == dockerHub {
		return "registry-1.docker.io"
	}
	return host
}

// newRegistry prepares the pull. Plain HTTP is spoken only with this very
// machine.
func newRegistry(s Source) *registry {
	host := apiHost(s.Host)
	r := &registry{source: s, base: "https://" + host}
	if loopback(host) {
		r.base = "http://" + host
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: registryPatience, TLSHandshakeTimeout: registryPatience,
		DialContext:       (&net.Dialer{Timeout: registryPatience}).DialContext,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: parallel, IdleConnTimeout: registryPatience,
		// A layer is compressed already, and its size must match the stated one.
		DisableCompression: true,
	}
	r.client = &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		// net/http itself keeps the login from another host.
		if len(via) >= 10 {
			return errors.New("it redirects in circles")
		}
		if next.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
			return errors.New("it redirects to plain HTTP")
		}
		return nil
	}}
	return r
}

func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// acceptable are the media types that are understood.
const acceptable = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, " +
	"application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"

func (r *registry) top(ctx context.Context) (descriptor, []byte, error) {
	wanted := r.source.Tag
	if r.source.Digest != "" {
		wanted = r.source.Digest
	}
	answer, err := r.get(ctx, "manifests/"+wanted)
	if err != nil {
		return descriptor{}, nil, err
	}
	defer answer.Body.Close()
	content, err := readDocument(answer.Body)
	if err != nil {
		return descriptor{}, nil, fault.Wrap("", err, "cannot read the manifest of %s", r.source)
	}
	digest := digestOf(content)
	if r.source.Digest != "" && digest != r.source.Digest {
		return descriptor{}, nil, fault.New(fault.Denied, "cannot use %s: the registry sent content with digest %s", r.source, digest)
	}
	return descriptor{Digest: digest}, content, nil
}

func (r *registry) manifest(ctx context.Context, d descriptor) (io.ReadCloser, error) {
	answer, err := r.get(ctx, "manifests/"+d.Digest)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func (r *registry) blob(ctx context.Context, d descriptor) (io.ReadCloser, error) {
	answer, err := r.get(ctx, "blobs/"+d.Digest)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// get asks the registry, logging in when required and trying again when it is
// overloaded. The caller closes the body.
func (r *registry) get(ctx context.Context, what string) (*http.Response, error) {
	address := r.base + "/v2/" + r.source.Name + "/" + what
	cannot := func(kind fault.Kind, format string, args ...any) *fault.Error {
		return fault.New(kind, "cannot pull %s: %s", r.source, fmt.Sprintf(format, args...))
	}
	for attempt, asked := 1, false; ; attempt++ {
		r.mu.Lock()
		login := r.login
		r.mu.Unlock()
		answer, err := r.ask(ctx, address, login)
		switch {
		case ctx.Err() != nil:
			return nil, fault.Wrap(fault.Canceled, errors.Join(ctx.Err(), closed(answer)), "cannot pull %s", r.source)
		case err != nil && attempt == tries:
			var wrong *url.Error
			if errors.As(err, &wrong) {
				err = wrong.Err // without the address, which may hold a token
			}
			return nil, cannot(fault.Unavailable, "%v", err).WithHint("look at the network of this machine, then try again")
		case err == nil && answer.StatusCode == http.StatusOK:
			return answer, nil
		case err == nil && answer.StatusCode == http.StatusUnauthorized && !asked:
			challenge := answer.Header.Values("WWW-Authenticate")
			if err := closed(answer); err != nil {
				return nil, cannot(fault.Unavailable, "%v", err)
			}
			if login, err = r.authorize(ctx, challenge); err != nil {
				return nil, err
			}
			r.mu.Lock()
			r.login = login
			r.mu.Unlock()
			asked = true
			continue
		case err == nil && (answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests || attempt == tries):
			return nil, errors.Join(r.refused(answer.StatusCode), closed(answer))
		}
		_ = closed(answer) // the next answer counts
		if err := pause(ctx, attempt); err != nil {
			return nil, cannot(fault.Canceled, "%v", err)
		}
	}
}

// tries is the total number of attempts.
const tries = 4

func pause(ctx context.Context, attempt int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(attempt*attempt) * 250 * time.Millisecond):
		return nil
	}
}

func (r *registry) ask(ctx context.Context, address, login string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", acceptable)
	request.Header.Set("User-Agent", "litterbox")
	if login != "" {
		request.Header.Set("Authorization", login)
	}
	return r.client.Do(request)
}

// refused says what a status means here.
func (r *registry) refused(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.New(fault.Denied, "cannot pull %s: %s refuses it, or has no such image", r.source, r.source.Host).
			WithHint("docker login %s, or correct the name", r.source.Host)
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "cannot pull %s: the registry has no such image", r.source).
			WithHint("correct container.base-image; a tag stands behind a colon")
	case http.StatusTooManyRequests:
		return fault.New(fault.Unavailable, "cannot pull %s: %s has had too many requests from here", r.source, r.source.Host).
			WithHint("docker login %s, or wait", r.source.Host)
	}
	return fault.New(fault.Unavailable, "cannot pull %s: the registry answers %d %s", r.source, status, http.StatusText(status))
}

func closed(answer *http.Response) error {
	if answer == nil {
		return nil
	}
	return answer.Body.Close()
}
