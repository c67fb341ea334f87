package vault

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// identityFile holds the key that encrypts the files, in age's own form: the age
// program reads the files with it.
const identityFile = "identity.txt"

func (v Vault) file(name string) string { return filepath.Join(v.Dir, name+".age") }

func (v Vault) encrypt(name string, value []byte) error {
	identity, err := v.identity()
	if errors.Is(err, fs.ErrNotExist) {
		identity, err = v.newIdentity()
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	writer, err := age.Encrypt(&out, identity.Recipient())
	if err == nil {
		_, err = writer.Write(value)
	}
	if err == nil {
		err = writer.Close()
	}
	if err == nil {
		err = v.write(v.file(name), out.Bytes())
	}
	return err
}

func (v Vault) decrypt(name string) ([]byte, error) {
	if !secret.ValidEntry(name) {
		return nil, errNoEntry
	}
	file, err := os.Open(v.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoEntry
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open age:%s", name)
	}
	defer file.Close() // read only
	identity, err := v.identity()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the key of age:%s", name)
	}
	reader, err := age.Decrypt(file, identity)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot decrypt age:%s", name).WithHint("litterbox secrets set %s --age", name)
	}
	value, err := io.ReadAll(io.LimitReader(reader, secret.Longest+2))
	if err != nil {
		clear(value)
		return nil, fault.Wrap(fault.Unavailable, err, "cannot decrypt age:%s", name).WithHint("litterbox secrets set %s --age", name)
	}
	return value, nil
}

func (v Vault) identity() (*age.X25519Identity, error) {
	path := filepath.Join(v.Dir, identityFile)
	if err := ownership.Check(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	defer clear(data)
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			identity, err := age.ParseX25519Identity(line)
			if err != nil {
				return nil, fault.New(fault.Invalid, "cannot read %s: it holds no key of age", path)
			}
			return identity, nil
		}
	}
	return nil, fault.New(fault.Invalid, "cannot read %s: it holds no key of age", path)
}

func (v Vault) newIdentity() (*age.X25519Identity, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	text := "# The key of litterbox's stored secrets. Anyone who has it can read them.\n# public key: " + identity.Recipient().String() + "\n" + identity.String() + "\n"
	return identity, v.write(filepath.Join(v.Dir, identityFile), []byte(text))
}
