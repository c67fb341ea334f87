package engine

import (
	"bytes"
	"encoding/pem"
	"os"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
)

// extraRootsVariable names a file with authorities that Node.js and Bun trust
// besides their own. Bun fails every TLS connection when it names a file without
// a certificate, and Node.js warns, so it never names one.
const extraRootsVariable = "NODE_EXTRA_CA_CERTS"

// certificate is one block of a PEM file: what it holds, and the lines as they stand
// in the file.
type certificate struct {
	der  string
	text []byte
}

// certificates are the certificate blocks of a PEM file, each once. Anything else
// in the file, such as a private key, stays out.
func certificates(content []byte) []certificate {
	var found []certificate
	known := map[string]bool{}
	for {
		block, rest := pem.Decode(content)
		if block == nil {
			return found
		}
		text := content[:len(content)-len(rest)]
		content = rest
		der := string(block.Bytes)
		if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" || known[der] {
			continue
		}
		known[der] = true
		text = text[bytes.LastIndex(text, pemBegin):] // before it stand comments, and blocks that are damaged
		found = append(found, certificate{der, slices.Concat(bytes.TrimRight(text, "\r\n"), []byte{'\n'})})
	}
}

// pemBegin begins a block.
var pemBegin = []byte("-----BEGIN ")

// onlyCertificates reports whether a PEM file has blocks of no other kind. It is
// quicker by far than to read them.
func onlyCertificates(content []byte) bool {
	count := bytes.Count(content, []byte("-----BEGIN CERTIFICATE-----\n"))
	return count > 0 && count == bytes.Count(content, pemBegin)
}

// extraRoots are the authorities that the caller's own Node.js programs trust
// besides the system's: companies have their own. An unreadable one is a note, as
// Node.js warns of it too. Nearly always it is the system's bundle once more.
func (p *place) extraRoots(caller *caller.Caller, bundle []byte) []byte {
	path := caller.Get(extraRootsVariable)
	if path == "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		p.note("the certificates that " + extraRootsVariable + " names cannot be read: " + err.Error())
		return nil
	}
	if bytes.Equal(content, bundle) && onlyCertificates(bundle) {
		return bundle
	}
	var text []byte
	for _, one := range certificates(content) {
		text = append(text, one.text...)
	}
	return text
}

// withRoots is a bundle with the certificates that only extra has. Both are often
// the same file, of more than a hundred.
func withRoots(bundle, extra []byte) []byte {
	if len(extra) == 0 || bytes.Equal(bundle, extra) {
		return bundle
	}
	known := map[string]bool{}
	for _, one := range certificates(bundle) {
		known[one.der] = true
	}
	for _, one := range certificates(extra) {
		if !known[one.der] {
			bundle = append(append(bytes.TrimRight(bundle, "\n"), '\n'), one.text...)
		}
	}
	return bundle
}

// firstRoot is one authority of a bundle: it is trusted anyway, and stands where
// a file must not be empty.
func firstRoot(bundle []byte) []byte {
	for {
		block, rest := pem.Decode(bundle)
		if block == nil {
			return nil
		}
		if block.Type == "CERTIFICATE" {
			return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})
		}
		bundle = rest
	}
}
