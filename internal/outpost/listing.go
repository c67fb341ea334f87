package outpost

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
)

// TokenOf names a listing that both ends keep. No listing has a token, too.
func TokenOf(listing []byte) string {
	sum := sha256.Sum256(listing)
	return hex.EncodeToString(sum[:])
}

// KeepFile writes a file that saves work and is never needed: it is whole or not
// there, and may be lost with the power.
func KeepFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".kept-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
