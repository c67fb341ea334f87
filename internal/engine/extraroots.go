package engine

import (
	"bytes"
	"encoding/pem"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
)

// extraRootsVariable names a file with authorities that Node.js and Bun trust
// besides their own. Bun fails every TLS connection when it names a file without
// a certificate, and Node.js warns, so it never names one.
const extraRootsVariable = "NODE_EXTRA_CA_CERTS"

// certificates are the certificate blocks of a PEM file, each once. Anything else
// in the file, such as a private key, stays out.
func certificates(content []byte) [][]byte {
	var found [][]byte
	known := map[string]bool{}
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			return found
		}
		if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" || known[string(block.Bytes)] {
			continue
		}
		known[string(block.Bytes)] = true
		found = append(found, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
}

// extraRoots are the authorities that the caller's own Node.js programs trust
// besides the system's: companies have their own. An unreadable one is a note, as
// Node.js warns of it too.
func (p *place) extraRoots(caller *caller.Caller) []byte {
	path := caller.Get(extraRootsVariable)
	if path == "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		p.note("the certificates that " + extraRootsVariable + " names cannot be read: " + err.Error())
		return nil
	}
	return bytes.Join(certificates(content), nil)
}

// withRoots is a bundle with the certificates that only extra has. Both are often
// the same file, of more than a hundred.
func withRoots(bundle, extra []byte) []byte {
	if len(extra) == 0 || bytes.Equal(bundle, extra) {
		return bundle
	}
	known := map[string]bool{}
	for _, text := range certificates(bundle) {
		known[string(text)] = true
	}
	for _, text := range certificates(extra) {
		if !known[string(text)] {
			bundle = append(append(bytes.TrimRight(bundle, "\n"), '\n'), text...)
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
