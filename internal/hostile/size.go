package hostile

// Counted remembers files that were counted: a hard link takes no space.
type Counted map[[2]uint64]struct{}

// Size adds up the blocks below path that were not counted yet. Unreadable
// files do not count: a sandbox may have closed its own directories.
func (seen Counted) Size(path string) int64 {
	var total int64
	Walk(path, func(entry Entry) {
		key := [2]uint64{entry.Device, entry.Inode}
		if _, known := seen[key]; !known {
			seen[key] = struct{}{}
			total += entry.Bytes
		}
	})
	return total
}
