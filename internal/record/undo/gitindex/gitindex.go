// Package gitindex reads git's index, which records the last known state of the files in a work tree.
// Unlike running git, reading the index runs nothing, locks nothing and writes nothing.
package gitindex

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Entry is a regular file as git last saw it.
type Entry struct {
	File
	Name []byte // valid only until the next entry
	ID   []byte // id of the content's object; same validity
	// Executable reports whether it is executable.
	Executable bool
}

// OID returns the object's id in git's notation.
func (e Entry) OID() string { return hex.EncodeToString(e.ID) }

// File is the file system's metadata of a file.
type File struct {
	ModTime, ChangeTime int64 // nanoseconds
	Ino, Size           uint32
}

// IsUnchanged reports whether a file is still the one git saw, in an index written at the given time in
// nanoseconds. A file changed at the moment when the index was written may be another one.
func (f File) IsUnchanged(now File, written int64) bool {
	return f == now && f.ModTime < written && f.ChangeTime < written
}

var errFormat = errors.New("git's index has an unknown format")

const (
	headerSize   = 12 // signature, version, number of entries
	statSize     = 40 // the metadata in an entry
	flagExtended = 0x4000
	flagStage    = 0x3000

	gitRegular = 0o10 // type bits of a regular file
)

// Source is an index file that can be read repeatedly.
type Source struct {
	Open     func() (fs.File, error)
	MaxBytes int64 // limit on the bytes read

	oidSize int // 0 before the first read
}

var errTooLarge = errors.New("git's index is too large")

// Each is [Read] on the current index, with the time it was written. After an error, discard everything
// visited.
func (s *Source) Each(prefix string, visit func(e Entry, written int64)) error {
	f, err := s.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > s.MaxBytes {
		return errTooLarge
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return err
	}
	if s.oidSize == 0 {
		s.oidSize = OIDSize(text)
	}
	written := info.ModTime().UnixNano()
	return Read(text, s.oidSize, prefix, func(e Entry) { visit(e, written) })
}

// Read calls visit for the files of an index of version 2 to 4 that are below prefix and not in
// conflict, sorted by name and without the prefix.
func Read(text []byte, oidSize int, prefix string, visit func(Entry)) error {
	_, err := visitEntries(text, oidSize, func(e Entry, mode uint32, flags uint16) {
		below, ok := bytes.CutPrefix(e.Name, []byte(prefix))
		if ok && mode>>12 == gitRegular && flags&flagStage == 0 {
			e.Name, e.Executable = below, mode&0o100 != 0
			visit(e)
		}
	})
	return err
}

// visitEntries calls visit for all entries of an index, and returns the rest after them.
func visitEntries(text []byte, oidSize int, visit func(e Entry, mode uint32, flags uint16)) (rest []byte, err error) {
	if len(text) < headerSize || string(text[:4]) != "DIRC" {
		return nil, errFormat
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil, errFormat
	}
	var name []byte
	rest = text[headerSize:]
	num := func(at int) uint32 { return binary.BigEndian.Uint32(rest[at:]) }
	for range count {
		n := statSize + oidSize + 2
		if len(rest) < n+2 {
			return nil, errFormat
		}
		e := Entry{ID: rest[statSize : statSize+oidSize], File: File{
			ChangeTime: int64(num(0))*int64(time.Second) + int64(num(4)),
			ModTime:    int64(num(8))*int64(time.Second) + int64(num(12)),
			Ino:        num(20), Size: num(36),
		}}
		mode, flags := num(24), binary.BigEndian.Uint16(rest[n-2:])
		if flags&flagExtended != 0 {
			n += 2
		}
		if version == 4 { // a name omits the prefix it shares with the previous one
			drop, size := parseOffset(rest[n:])
			if size == 0 || drop > len(name) {
				return nil, errFormat
			}
			name, n = name[:len(name)-drop], n+size
		} else {
			name = name[:0]
		}
		end := bytes.IndexByte(rest[n:], 0)
		if end < 0 {
			return nil, errFormat
		}
		name = append(name, rest[n:n+end]...)
		if n += end + 1; version < 4 { // padded to a multiple of eight
			n = (n + 7) / 8 * 8
		}
		if n > len(rest) {
			return nil, errFormat
		}
		e.Name = name
		visit(e, mode, flags)
		rest = rest[n:]
	}
	return rest, nil
}

// OIDSize returns the length of the repository's hashes. Only with the right one do the parts of an
// index end where its own hash begins. It tries the usual one first, which is also the result for
// invalid data.
func OIDSize(text []byte) int {
	for _, size := range []int{sha1.Size, sha256.Size} {
		rest, err := visitEntries(text, size, func(Entry, uint32, uint16) {})
		if err == nil && eachExtension(rest, size, func(string, []byte) {}) == nil {
			return size
		}
	}
	return sha1.Size
}

// eachExtension calls visit for the extensions after the entries of an index.
func eachExtension(rest []byte, oidSize int, visit func(name string, text []byte)) error {
	for len(rest) != oidSize {
		if len(rest) < extensionHeaderSize+oidSize {
			return errFormat
		}
		size := uint64(binary.BigEndian.Uint32(rest[4:]))
		if size > uint64(len(rest)-extensionHeaderSize-oidSize) {
			return errFormat
		}
		end := extensionHeaderSize + int(size)
		visit(string(rest[:4]), rest[extensionHeaderSize:end])
		rest = rest[end:]
	}
	return nil
}

const extensionHeaderSize = 8 // name and size

// parseOffset parses a number in the format of git's pack files, and returns its length in bytes, or 0 if it
// exceeds any name's length.
func parseOffset(text []byte) (n, size int) {
	n = -1
	for i, b := range text[:min(len(text), 4)] {
		n = (n+1)<<7 | int(b&0x7f)
		if b&0x80 == 0 {
			return n, i + 1
		}
	}
	return 0, 0
}
