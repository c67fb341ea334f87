package attribute

// Settings is the user's configuration, with git's spellings of a value
// already reduced to one.
type Settings struct {
	AutoCRLF string // core.autocrlf: "true", "input", "false" or ""
	EOL      string // core.eol: "lf", "crlf", "native" or ""
	LFS      bool   // filter.lfs is configured, so that git would run Git LFS
}

// Convert reports whether a conversion could change the content of a file with
// these attributes. For most files it is false, and the content is the blob.
func Convert(a Attributes, s Settings) bool {
	endings, _ := lineEndings(a, s)
	return endings != asIs || a.Ident || a.encoding() != "" || a.lfs(s)
}

// ConvertOut reports whether git could change the content of a blob when it writes a
// file with these attributes. Filters are not counted.
func ConvertOut(a Attributes, s Settings) bool {
	_, crlf := lineEndings(a, s)
	return crlf || a.Ident || a.encoding() != ""
}

// ToGit turns the content of a file into that of its blob, in git's order:
// the LFS pointer, working-tree-encoding, line endings, ident. Other filters
// are not run; their content stays as it is. The result may share memory with
// content.
//
// storedHasCRLF reports whether [HasCRLF] is true of the blob that the index
// (for a sandbox, the commit before) holds for the path; it is called at most
// once, and only where it matters. Nil means there is no such blob.
//
// An error means that git would refuse the file: an encoding that is unknown here,
// or content that is not in that encoding. Then content is returned unchanged.
func ToGit(content []byte, a Attributes, s Settings, storedHasCRLF func() bool) ([]byte, error) {
	converted := content
	if a.lfs(s) {
		converted = pointer(converted)
	}
	if name := a.encoding(); name != "" && len(converted) > 0 {
		var err error
		if converted, err = decode(converted, name); err != nil {
			return content, err
		}
	}
	switch endings, _ := lineEndings(a, s); endings {
	case always:
		converted = dropCRs(converted)
	case guess:
		converted = dropGuessedCRs(converted, storedHasCRLF)
	}
	if a.Ident {
		converted = collapseIdent(converted)
	}
	return converted, nil
}

// ToWorkTree is the reverse: it turns the content of a blob into that of its
// file. blobID is the blob's object name in hex, which ident shows. An LFS
// pointer stays a pointer: the object is not here. Errors are those of ToGit;
// git then checks out the content as it is, which is also returned.
func ToWorkTree(content []byte, a Attributes, s Settings, blobID string) ([]byte, error) {
	converted := content
	if a.Ident {
		converted = expandIdent(converted, blobID)
	}
	if endings, crlf := lineEndings(a, s); crlf {
		converted = addCRs(converted, endings)
	}
	if name := a.encoding(); name != "" && len(converted) > 0 {
		encoded, err := encode(converted, name)
		if err != nil {
			return converted, err
		}
		converted = encoded
	}
	return converted, nil
}
