package attribute

import "bytes"

// collapseIdent turns every "$Id: …$" within a line into "$Id$".
func collapseIdent(content []byte) []byte {
	var converted []byte
	kept := 0 // everything before it is in converted
	for at := 0; ; {
		i := bytes.Index(content[at:], []byte("$Id:"))
		if i < 0 {
			break
		}
		at += i + len("$Id:")
		end, ok := identEnd(content, at)
		if !ok {
			continue
		}
		converted = append(converted, content[kept:at-1]...)
		converted = append(converted, '$')
		at = end
		kept = end
	}
	if kept == 0 {
		return content
	}
	return append(converted, content[kept:]...)
}

// identEnd finds the end of an ident whose text begins at content[at]: after
// the next '$', unless the line ends first.
func identEnd(content []byte, at int) (end int, ok bool) {
	i := bytes.IndexAny(content[at:], "$\n")
	if i < 0 || content[at+i] == '\n' {
		return 0, false
	}
	return at + i + 1, true
}

// expandIdent turns every "$Id$" into "$Id: <blobID> $". An existing text is replaced,
// unless a space inside shows that it comes from another version control system.
func expandIdent(content []byte, blobID string) []byte {
	var converted []byte
	kept := 0
	for at := 0; ; {
		i := bytes.Index(content[at:], []byte("$Id"))
		if i < 0 || at+i+3 == len(content) {
			break
		}
		at += i + len("$Id")
		end := at + 1
		if content[at] == ':' {
			var ok bool
			if end, ok = identEnd(content, at+1); !ok || foreign(content[at+1:end-1]) {
				continue
			}
		} else if content[at] != '$' {
			continue
		}
		converted = append(converted, content[kept:at]...)
		converted = append(append(append(converted, ": "...), blobID...), " $"...)
		at = end
		kept = end
	}
	if kept == 0 {
		return content
	}
	return append(converted, content[kept:]...)
}

// foreign reports whether the text of an ident has a space other than the first
// and the last byte.
func foreign(text []byte) bool {
	return len(text) > 2 && bytes.IndexByte(text[1:len(text)-1], ' ') >= 0
}
