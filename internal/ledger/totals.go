package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// totalsFile has the totals of the beginning of the ledger, so that listings read
// only the rest. It is worth nothing by itself: without it, or where it does not
// fit the ledger, everything is read.
const totalsFile = "totals.json"

// totalsEvery is how many bytes of the ledger beyond the file are read before it
// is written again.
const totalsEvery = 64 << 10

// totals is the content of totalsFile.
type totals struct {
	Version int              `json:"version"`
	Files   map[string]upTo  `json:"files"`
	Rows    map[string]Row   `json:"rows"` // by the id of the sandbox
	Open    map[string]Entry `json:"open"`
	Starts  map[string]Entry `json:"starts"`
}

// upTo is how far a file was read.
type upTo struct {
	Offset int64  `json:"offset"` // the end of a line
	Before string `json:"before"` // the hash of the bytes before that, up to beforeSize
}

const beforeSize = 512

// Totals adds up the cost of each sandbox, by its id. Of a long ledger it reads
// only what is new since the last time.
func Totals(dir string) (map[string]Row, error) {
	paths, err := files(dir)
	if err != nil {
		return nil, err
	}
	known := readTotals(dir, paths)
	all := newSums(func(Entry) bool { return true }, func(k Keys) Keys { return Keys{SandboxID: k.SandboxID} })
	for id, row := range known.Rows {
		all.rows[Keys{SandboxID: id}] = &row
	}
	maps.Copy(all.open, known.Open)
	maps.Copy(all.starts, known.Starts)
	fresh := 0
	for _, path := range paths {
		name := filepath.Base(path)
		data, end, err := readFrom(path, known.Files[name].Offset)
		if err != nil {
			return nil, err
		}
		each(data, func(e Entry) bool { all.take(e); return true })
		fresh += len(data)
		known.Files[name] = end
	}
	if fresh >= totalsEvery {
		known.Version, known.Rows, known.Open, known.Starts = Version, map[string]Row{}, all.open, all.starts
		for k, row := range all.rows {
			known.Rows[k.SandboxID] = *row
		}
		_ = known.write(dir) // the next one reads as much as this one
	}
	rows := map[string]Row{}
	for _, group := range all.groups() {
		rows[group.SandboxID] = group.Row
	}
	return rows, nil
}

// readFrom reads whole lines.
func readFrom(path string, offset int64) (data []byte, end upTo, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, end, unavailable(err)
	}
	defer file.Close() // read only
	data, err = io.ReadAll(io.NewSectionReader(file, offset, 1<<62))
	if err == nil {
		data = data[:bytes.LastIndexByte(data, '\n')+1]
		end.Offset = offset + int64(len(data))
		end.Before, err = hashBefore(file, end.Offset)
	}
	if err != nil {
		return nil, end, unavailable(err)
	}
	return data, end, nil
}

func hashBefore(file *os.File, offset int64) (string, error) {
	from := max(0, offset-beforeSize)
	before := make([]byte, offset-from)
	if _, err := file.ReadAt(before, from); err != nil && !(errors.Is(err, io.EOF) && len(before) == 0) {
		return "", err
	}
	sum := sha256.Sum256(before)
	return hex.EncodeToString(sum[:]), nil
}

// readTotals reads the file, where it fits the ledger.
func readTotals(dir string, paths []string) totals {
	none := totals{Files: map[string]upTo{}}
	data, err := os.ReadFile(filepath.Join(dir, totalsFile))
	var read totals
	if err != nil || seal.Decode(data, &read) != nil || read.Version != Version || read.Files == nil {
		return none
	}
	for name, at := range read.Files {
		path := filepath.Join(dir, name)
		if !slices.Contains(paths, path) {
			return none // a month was removed
		}
		file, err := os.Open(path)
		if err != nil {
			return none
		}
		before, err := hashBefore(file, at.Offset)
		if err = errors.Join(err, file.Close()); err != nil || before != at.Before {
			return none
		}
	}
	return read
}

func (t totals) write(dir string) error {
	data, err := seal.Encode(t)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, "."+totalsFile+"-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, totalsFile))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}
