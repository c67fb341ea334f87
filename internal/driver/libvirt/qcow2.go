package libvirt

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// overlayOn makes an empty qcow2 file whose content is that of another one until
// it is written to. (The format: docs/interop/qcow2.txt of QEMU.)
func overlayOn(path, backing string) error {
	size, err := virtualSize(backing)
	if err != nil {
		return err
	}
	const cluster = 64 << 10
	const perTable = cluster / 8 * cluster // bytes that one table of the second level describes
	tables := (size + perTable - 1) / perTable
	if tables*8 > cluster || len(backing) > 1023 {
		return errors.New("the disk is too large")
	}
	image := make([]byte, 4*cluster) // header, table and block of reference counts, first table
	be := binary.BigEndian
	copy(image, "QFI\xfb")
	be.PutUint32(image[4:], 3) // version
	be.PutUint32(image[16:], uint32(len(backing)))
	be.PutUint32(image[20:], 16) // bits of a cluster
	be.PutUint64(image[24:], size)
	be.PutUint32(image[36:], uint32(tables))
	be.PutUint64(image[40:], 3*cluster) // first table
	be.PutUint64(image[48:], cluster)   // table of reference counts
	be.PutUint32(image[56:], 1)         // its clusters
	be.PutUint32(image[96:], 4)         // 2^4 bits a count
	be.PutUint32(image[100:], 104)      // length of the header
	at := 104
	be.PutUint32(image[at:], 0xE2792ACA) // the backing file's format
	be.PutUint32(image[at+4:], 5)
	copy(image[at+8:], "qcow2")
	at += 16 + 8                             // that and the end of extensions, which is zero
	be.PutUint64(image[8:], uint64(at))      // the backing file's name
	copy(image[at:], backing)                //
	be.PutUint64(image[cluster:], 2*cluster) // the one block
	for i := range 4 {                       // the clusters in use
		be.PutUint16(image[2*cluster+2*i:], 1) //
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(image)
	return errors.Join(err, f.Close())
}

// virtualSize reads how large the disk in a qcow2 file is.
func virtualSize(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var head [32]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return 0, err
	}
	if string(head[:4]) != "QFI\xfb" {
		return 0, errors.New(path + " is not a qcow2 file")
	}
	return binary.BigEndian.Uint64(head[24:]), nil
}
