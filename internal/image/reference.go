package image

import "strings"

// parseReference reads a registry's reference the way docker and podman do: a
// first part that looks like a host is one, everything else is at docker.io. The
// grammar is distribution/reference's. It returns the problem.
func parseReference(typed string) (s Source, why string) {
	s = Source{Kind: Registry, Host: dockerHub}
	rest, digest, pinned := strings.Cut(typed, "@")
	if pinned {
		if checkDigest(digest) != nil {
			return s, "what stands behind the @ is not a sha256 digest"
		}
		s.Digest = digest
	}
	if host, name, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		s.Host, rest = host, name
	}
	if at := strings.LastIndexByte(rest, ':'); at >= 0 {
		rest, s.Tag = rest[:at], rest[at+1:]
		if !isTag(s.Tag) {
			return s, "its tag is not a valid one"
		}
	} else if !pinned {
		s.Tag = "latest"
	}
	if s.Host == "index.docker.io" || s.Host == "registry-1.docker.io" {
		s.Host = dockerHub
	}
	if s.Host == dockerHub && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	s.Name = rest
	switch {
	case !isHost(s.Host):
		return s, "the registry's name is not a valid one"
	case !isName(s.Name):
		return s, "an image's name has lower-case letters, digits, and single separators between them"
	}
	return s, ""
}

// dockerHub is the host in its images' names; the API is elsewhere.
const dockerHub = "docker.io"

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

func only(s, allowed string) bool { return strings.Trim(s, allowed) == "" && s != "" }

func isTag(s string) bool {
	return len(s) <= 128 && only(s, lower+upper+digits+"_.-") && s[0] != '.' && s[0] != '-'
}

func isHost(s string) bool {
	name, port, numbered := strings.Cut(s, ":")
	if strings.HasPrefix(s, "[") { // IPv6
		address, rest, ok := strings.Cut(s[1:], "]")
		return ok && only(address, digits+"abcdefABCDEF:.") && (rest == "" || strings.HasPrefix(rest, ":") && only(rest[1:], digits))
	}
	if numbered && (!only(port, digits) || len(port) > 5) {
		return false
	}
	return len(name) <= 253 && only(name, lower+upper+digits+".-") && !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, ".")
}

func isName(s string) bool {
	if len(s) > 255 {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if !only(part, lower+digits+"._-") || !only(part[:1], lower+digits) || !only(part[len(part)-1:], lower+digits) ||
			strings.Contains(part, "..") || strings.Contains(part, "___") || strings.Contains(part, "._") || strings.Contains(part, "_.") {
			return false
		}
	}
	return true
}
