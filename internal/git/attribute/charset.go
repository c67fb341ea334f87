package attribute

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// charset converts between an encoding older than Unicode and UTF-8. Both
// directions fail where a byte or character has no counterpart.
type charset interface {
	decode([]byte) ([]byte, bool)
	encode([]byte) ([]byte, bool) // of valid UTF-8
}

// findCharset knows the encodings for which golang.org/x/text agrees with
// glibc's iconv, under names that iconv accepts; nil for any other. These were
// compared and left out, because one character or more differs and would
// silently change a blob: Shift_JIS, EUC-JP, EUC-KR, Big5, GB18030, KOI8-U,
// macintosh, windows-1255 and windows-1258 (glibc composes their accents).
//
// To add one: 1. compare both over all byte pairs, 2. add it here, 3. add it
// to TestCharsetsAsGit.
func findCharset(name string) charset {
	name = strings.ToUpper(name)
	switch name {
	case "ASCII", "US-ASCII":
		return ascii{}
	case "LATIN1", "L1":
		return singleByte{charmap.ISO8859_1, true}
	case "LATIN2", "L2":
		return singleByte{charmap.ISO8859_2, true}
	case "LATIN-9":
		return singleByte{charmap.ISO8859_15, true}
	case "KOI8-R":
		return singleByte{charmap.KOI8R, false}
	case "CP932":
		return multiByte{japanese.ShiftJIS}
	case "GBK", "CP936":
		return multiByte{simplifiedchinese.GBK}
	case "UHC", "CP949":
		return multiByte{korean.EUCKR}
	}
	for _, prefix := range []string{"ISO-8859-", "ISO8859-", "ISO_8859-"} {
		if part, ok := strings.CutPrefix(name, prefix); ok {
			if table := iso8859(part); table != nil {
				return singleByte{table, true}
			}
			return nil
		}
	}
	var table *charmap.Charmap
	if page, ok := strings.CutPrefix(name, "CP"); ok {
		table = cmp.Or(dosPage(page), windowsPage(page))
	} else if page, ok := strings.CutPrefix(name, "IBM"); ok {
		table = dosPage(page)
	} else if page, ok := strings.CutPrefix(name, "WINDOWS-"); ok {
		table = windowsPage(page)
	}
	if table == nil {
		return nil
	}
	return singleByte{table, false}
}

func iso8859(part string) *charmap.Charmap {
	switch part {
	case "1":
		return charmap.ISO8859_1
	case "2":
		return charmap.ISO8859_2
	case "3":
		return charmap.ISO8859_3
	case "4":
		return charmap.ISO8859_4
	case "5":
		return charmap.ISO8859_5
	case "6":
		return charmap.ISO8859_6
	case "7":
		return charmap.ISO8859_7
	case "8":
		return charmap.ISO8859_8
	case "9":
		return charmap.ISO8859_9
	case "10":
		return charmap.ISO8859_10
	case "13":
		return charmap.ISO8859_13
	case "14":
		return charmap.ISO8859_14
	case "15":
		return charmap.ISO8859_15
	case "16":
		return charmap.ISO8859_16
	}
	return nil
}

func dosPage(page string) *charmap.Charmap {
	switch page {
	case "437":
		return charmap.CodePage437
	case "850":
		return charmap.CodePage850
	case "852":
		return charmap.CodePage852
	case "855":
		return charmap.CodePage855
	case "860":
		return charmap.CodePage860
	case "862":
		return charmap.CodePage862
	case "863":
		return charmap.CodePage863
	case "865":
		return charmap.CodePage865
	case "866":
		return charmap.CodePage866
	}
	return nil
}

func windowsPage(page string) *charmap.Charmap {
	switch page {
	case "874":
		return charmap.Windows874
	case "1250":
		return charmap.Windows1250
	case "1251":
		return charmap.Windows1251
	case "1252":
		return charmap.Windows1252
	case "1253":
		return charmap.Windows1253
	case "1254":
		return charmap.Windows1254
	case "1256":
		return charmap.Windows1256
	case "1257":
		return charmap.Windows1257
	}
	return nil
}

type ascii struct{}

func (ascii) decode(content []byte) ([]byte, bool) {
	for _, c := range content {
		if c >= utf8.RuneSelf {
			return nil, false
		}
	}
	return content, true
}

func (a ascii) encode(content []byte) ([]byte, bool) { return a.decode(content) }

// singleByte is a table of 256 characters. An ISO part has the control
// characters 0x80 to 0x9f in their own places, which x/text mostly leaves out.
type singleByte struct {
	table *charmap.Charmap
	iso   bool
}

func (s singleByte) decode(content []byte) ([]byte, bool) {
	decoded := make([]byte, 0, len(content)+len(content)/4)
	for _, c := range content {
		r := rune(c)
		if !s.iso || c >= 0xa0 {
			r = s.table.DecodeByte(c)
		}
		if r == utf8.RuneError {
			return nil, false
		}
		decoded = utf8.AppendRune(decoded, r)
	}
	return decoded, true
}

func (s singleByte) encode(content []byte) ([]byte, bool) {
	encoded := make([]byte, 0, len(content))
	for _, r := range string(content) {
		c, ok := s.table.EncodeRune(r)
		if s.iso && r < 0xa0 {
			c, ok = byte(r), true
		}
		if !ok {
			return nil, false
		}
		encoded = append(encoded, c)
	}
	return encoded, true
}

// multiByte is an East Asian encoding. None of those here has the replacement
// character, so it can stand for bytes that x/text could not decode.
type multiByte struct{ encoding encoding.Encoding }

func (m multiByte) decode(content []byte) ([]byte, bool) {
	decoded, err := m.encoding.NewDecoder().Bytes(content)
	return decoded, err == nil && !bytes.ContainsRune(decoded, utf8.RuneError)
}

func (m multiByte) encode(content []byte) ([]byte, bool) {
	encoded, err := m.encoding.NewEncoder().Bytes(content)
	return encoded, err == nil
}
