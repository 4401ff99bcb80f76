// Package gitindex reads the file in which git notes what it last knew about
// the files of a work tree. Reading it, rather than asking git, runs nothing,
// locks nothing and writes nothing.
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

// Entry is a regular file as git saw it last.
type Entry struct {
	File
	Name []byte // only good until the next is read
	ID   []byte // of the object that holds its content; likewise
}

// OID is the object's id as git writes it.
func (e Entry) OID() string { return hex.EncodeToString(e.ID) }

// File is what the file system said about a file.
type File struct {
	ModTime, ChangeTime int64 // nanoseconds
	Ino, Size           uint32
}

// Unchanged reports whether a file is still what git saw, in an index that was
// written at that time, in nanoseconds. A file changed in the very moment the
// index was written might be another one.
func (f File) Unchanged(now File, written int64) bool {
	return f == now && f.ModTime < written && f.ChangeTime < written
}

var errFormat = errors.New("git's index has an unknown format")

const (
	indexHead    = 12 // signature, version, number of entries
	statPart     = 40 // of an entry: what the file system said
	flagExtended = 0x4000
	flagStage    = 0x3000

	gitRegular = 0o10 // the type bits of a regular file
)

// Source is a file that holds an index, to be read as often as need be.
type Source struct {
	Open func() (fs.File, error)
	Most int64 // bytes that are read of it

	oidSize int // 0 before it was first read
}

var errTooLarge = errors.New("git's index is too large")

// Each is [Read] of what the index says now; it also tells when that was
// written. If there is an error, what was told is void.
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
	if info.Size() > s.Most {
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

// Read calls visit for the files of an index of version 2 to 4 that lie below
// prefix and are not in conflict, in the order of their names and without the
// prefix.
func Read(text []byte, oidSize int, prefix string, visit func(Entry)) error {
	if len(text) < indexHead || string(text[:4]) != "DIRC" {
		return errFormat
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return errFormat
	}
	var name []byte
	rest := text[indexHead:]
	num := func(at int) uint32 { return binary.BigEndian.Uint32(rest[at:]) }
	for range count {
		n := statPart + oidSize + 2
		if len(rest) < n+2 {
			return errFormat
		}
		e := Entry{ID: rest[statPart : statPart+oidSize], File: File{
			ChangeTime: int64(num(0))*int64(time.Second) + int64(num(4)),
			ModTime:    int64(num(8))*int64(time.Second) + int64(num(12)),
			Ino:        num(20), Size: num(36),
		}}
		mode, flags := num(24), binary.BigEndian.Uint16(rest[n-2:])
		if flags&flagExtended != 0 {
			n += 2
		}
		if version == 4 { // a name leaves out what it has in common with the last
			drop, size := offset(rest[n:])
			if size == 0 || drop > len(name) {
				return errFormat
			}
			name, n = name[:len(name)-drop], n+size
		} else {
			name = name[:0]
		}
		end := bytes.IndexByte(rest[n:], 0)
		if end < 0 {
			return errFormat
		}
		name = append(name, rest[n:n+end]...)
		if n += end + 1; version < 4 { // filled up to a multiple of eight
			n = (n + 7) / 8 * 8
		}
		if n > len(rest) {
			return errFormat
		}
		below, ok := bytes.CutPrefix(name, []byte(prefix))
		if ok && mode>>12 == gitRegular && flags&flagStage == 0 {
			e.Name = below
			visit(e)
		}
		rest = rest[n:]
	}
	return nil
}

// OIDSize finds out which hash the repository uses: an index ends with one over
// all of it. Where it was left out (it may be) the hash is the usual one.
func OIDSize(text []byte) int {
	if n := len(text) - sha256.Size; n >= 0 && sha256.Sum256(text[:n]) == [sha256.Size]byte(text[n:]) {
		return sha256.Size
	}
	return sha1.Size
}

// offset reads a number in the way of git's pack files, and tells how many bytes
// it takes; none if it is longer than that of any name.
func offset(text []byte) (n, size int) {
	n = -1
	for i, b := range text[:min(len(text), 4)] {
		n = (n+1)<<7 | int(b&0x7f)
		if b&0x80 == 0 {
			return n, i + 1
		}
	}
	return 0, 0
}
