package probe

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// delta writes a pack and its index into a directory of git objects: a file of
// 64 KiB, and a delta of a few bytes that makes one of many MiB out of it. It
// holds neither, and answers with their ids.
func delta(args []string) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("delta DIRECTORY MIB")
	}
	mib, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	const piece = 64 << 10
	pieces := mib << 20 / piece
	base, large := blobHash(piece), blobHash(pieces*piece)
	for range pieces {
		large.Write(make([]byte, piece))
	}
	base.Write(make([]byte, piece))

	// Each 0x80 copies 64 KiB from the beginning of the base: gitformat-pack(5).
	instructions := binary.AppendUvarint(binary.AppendUvarint(nil, piece), uint64(pieces*piece))
	instructions = append(instructions, bytes.Repeat([]byte{0x80}, pieces)...)
	const blob, namedDelta = 3, 7
	objects := []packed{
		{id: base.Sum(nil), kind: blob, content: make([]byte, piece)},
		{id: large.Sum(nil), kind: namedDelta, base: base.Sum(nil), content: instructions},
	}
	pack := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02")
	for i := range objects {
		objects[i].at = len(pack)
		entry, err := objects[i].entry()
		if err != nil {
			return nil, err
		}
		objects[i].crc = crc32.ChecksumIEEE(entry)
		pack = append(pack, entry...)
	}
	sum := sha1.Sum(pack)
	pack = append(pack, sum[:]...)
	name := filepath.Join(args[0], "pack-"+hex.EncodeToString(sum[:]))
	answer := map[string]string{"id": hex.EncodeToString(large.Sum(nil)), "base": hex.EncodeToString(base.Sum(nil))}
	return answer, errors.Join(os.WriteFile(name+".pack", pack, 0o444), os.WriteFile(name+".idx", packIndex(objects, sum[:]), 0o444))
}

// blobHash starts the hash for the id of a file of that size.
func blobHash(size int) hash.Hash {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

// packed is an object of a pack.
type packed struct {
	id, base, content []byte
	kind, at          int
	crc               uint32
}

// entry returns the object as it is in the pack.
func (p packed) entry() ([]byte, error) {
	size := len(p.content)
	b, entry := byte(p.kind<<4|size&15), []byte(nil)
	for size >>= 4; size > 0; size >>= 7 {
		entry = append(entry, b|0x80)
		b = byte(size & 0x7f)
	}
	entry = append(append(entry, b), p.base...)
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	if _, err := w.Write(p.content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return append(entry, deflated.Bytes()...), nil
}

// packIndex returns version 2 of a pack's index.
func packIndex(objects []packed, pack []byte) []byte {
	slices.SortFunc(objects, func(a, b packed) int { return bytes.Compare(a.id, b.id) })
	index := []byte("\xfftOc\x00\x00\x00\x02")
	for first := range 256 {
		below := 0
		for _, o := range objects {
			if int(o.id[0]) <= first {
				below++
			}
		}
		index = binary.BigEndian.AppendUint32(index, uint32(below))
	}
	for _, o := range objects {
		index = append(index, o.id...)
	}
	for _, o := range objects {
		index = binary.BigEndian.AppendUint32(index, o.crc)
	}
	for _, o := range objects {
		index = binary.BigEndian.AppendUint32(index, uint32(o.at))
	}
	index = append(index, pack...)
	sum := sha1.Sum(index)
	return append(index, sum[:]...)
}
