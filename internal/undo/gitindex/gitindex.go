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
	"strings"
	"time"
)

// Index is what git knows about the files of a work tree, or of a part of it.
// The nil *Index knows nothing.
type Index struct {
	Files   map[string]File
	Written int64 // when the index was written, in nanoseconds; to be set by who read it
}

// File is a file as git saw it last.
type File struct {
	ModTime, ChangeTime int64 // nanoseconds
	Ino, Size           uint32
	OID                 string // the object that holds its content
}

var errFormat = errors.New("git's index is not understood")

const (
	indexHead    = 12 // signature, version, number of entries
	statPart     = 40 // of an entry: what the file system said
	flagExtended = 0x4000
	flagStage    = 0x3000
	nameMask     = 0x0fff
	gitRegular   = 0o10 // the type bits of a regular file
)

// Parse reads an index, versions 2 to 4. Only regular files below
// prefix that are not in conflict are returned, without the prefix.
func Parse(data []byte, prefix string) (*Index, error) {
	if len(data) < indexHead || string(data[:4]) != "DIRC" {
		return nil, errFormat
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, errFormat
	}
	p := parser{rest: data[indexHead:], version: version, oidSize: oidSize(data)}
	if int(count) > len(data)/(statPart+p.oidSize) {
		return nil, errFormat
	}
	x := &Index{Files: make(map[string]File, count)}
	for range count {
		e, mode, flags, err := p.entry()
		if err != nil {
			return nil, err
		}
		name, ok := strings.CutPrefix(string(p.name), prefix)
		if ok && mode>>12 == gitRegular && flags&flagStage == 0 {
			x.Files[name] = e
		}
	}
	return x, nil
}

// oidSize finds out which hash the repository uses: the index ends with one
// over all of it. Where it was left out (it may be) the hash is the usual one.
func oidSize(data []byte) int {
	if n := len(data) - sha256.Size; n > 0 {
		sum := sha256.Sum256(data[:n])
		if bytes.Equal(sum[:], data[n:]) {
			return sha256.Size
		}
	}
	return sha1.Size
}

// parser walks the entries of an index.
type parser struct {
	rest    []byte
	version uint32
	oidSize int
	name    []byte // of the last entry
}

func (p *parser) take(n int) ([]byte, error) {
	if n < 0 || n > len(p.rest) {
		return nil, errFormat
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b, nil
}

// entry reads one entry, leaving its name in p.name.
func (p *parser) entry() (e File, mode uint32, flags uint16, err error) {
	fixed, err := p.take(statPart + p.oidSize + 2)
	if err != nil {
		return e, 0, 0, err
	}
	num := func(at int) uint32 { return binary.BigEndian.Uint32(fixed[at:]) }
	e = File{
		ChangeTime: int64(num(0))*int64(time.Second) + int64(num(4)),
		ModTime:    int64(num(8))*int64(time.Second) + int64(num(12)),
		Ino:        num(20), Size: num(36),
		OID: hex.EncodeToString(fixed[statPart : statPart+p.oidSize]),
	}
	mode, flags = num(24), binary.BigEndian.Uint16(fixed[statPart+p.oidSize:])
	used := len(fixed)
	if flags&flagExtended != 0 {
		if _, err := p.take(2); err != nil {
			return e, 0, 0, err
		}
		used += 2
	}
	if p.version == 4 {
		return e, mode, flags, p.shortName()
	}
	return e, mode, flags, p.paddedName(int(flags&nameMask), used)
}

// paddedName reads a name that is filled up with NULs, at least one, so that
// the entry's length is a multiple of eight.
func (p *parser) paddedName(n, used int) error {
	if n == nameMask { // or longer
		if n = bytes.IndexByte(p.rest, 0); n < 0 {
			return errFormat
		}
	}
	name, err := p.take(n)
	if err != nil {
		return err
	}
	p.name = name
	_, err = p.take(8 - (used+n)%8)
	return err
}

// shortName reads a name that leaves out what it has in common with the last.
func (p *parser) shortName() error {
	cut, err := p.offset()
	if err != nil || cut > len(p.name) {
		return errFormat
	}
	n := bytes.IndexByte(p.rest, 0)
	if n < 0 {
		return errFormat
	}
	p.name = append(p.name[:len(p.name)-cut:len(p.name)-cut], p.rest[:n]...)
	p.rest = p.rest[n+1:]
	return nil
}

// offset reads a number in the way of git's pack files.
func (p *parser) offset() (int, error) {
	const most = 1 << 20 // longer than any name
	n := -1
	for {
		b, err := p.take(1)
		if err != nil || n > most {
			return 0, errFormat
		}
		n = (n+1)<<7 | int(b[0]&0x7f)
		if b[0]&0x80 == 0 {
			return n, nil
		}
	}
}

// Unchanged returns the object that holds the content of a file, provided that
// the file is now what git saw last. A file changed in the very moment the
// index was written might be another one.
func (x *Index) Unchanged(name string, now File) (oid string, ok bool) {
	if x == nil {
		return "", false
	}
	f, ok := x.Files[name]
	now.OID = f.OID
	return f.OID, ok && f == now && f.ModTime < x.Written && f.ChangeTime < x.Written
}
