// Package gitindex reads the file in which git notes what it last knew about
// the files of a work tree. Reading it, rather than asking git, runs nothing,
// locks nothing and writes nothing.
package gitindex

import (
	"bufio"
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

var errFormat = errors.New("git's index is not understood")

const (
	indexHead    = 12 // signature, version, number of entries
	statPart     = 40 // of an entry: what the file system said
	flagExtended = 0x4000
	flagStage    = 0x3000
	nameMask     = 0x0fff
	gitRegular   = 0o10 // the type bits of a regular file
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
	if s.oidSize == 0 {
		err := s.read(func(index io.Reader, info fs.FileInfo) (err error) {
			s.oidSize, err = OIDSize(index, info.Size())
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.read(func(index io.Reader, info fs.FileInfo) error {
		written := info.ModTime().UnixNano()
		return Read(index, s.oidSize, prefix, func(e Entry) { visit(e, written) })
	})
}

func (s *Source) read(do func(index io.Reader, info fs.FileInfo) error) error {
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
	return do(io.LimitReader(f, s.Most), info)
}

// Read calls visit for the files of an index of version 2 to 4 that lie below
// prefix and are not in conflict, in the order of their names and without the
// prefix. It takes up no more memory for a large index than for a small one.
func Read(index io.Reader, oidSize int, prefix string, visit func(Entry)) error {
	p := parser{in: bufio.NewReaderSize(index, 64<<10), oidSize: oidSize}
	head, err := p.take(indexHead)
	if err != nil || string(head[:4]) != "DIRC" {
		return errFormat
	}
	p.version = binary.BigEndian.Uint32(head[4:])
	count := binary.BigEndian.Uint32(head[8:])
	if p.version < 2 || p.version > 4 {
		return errFormat
	}
	for range count {
		e, mode, flags, err := p.entry()
		if err != nil {
			return err
		}
		name, ok := bytes.CutPrefix(p.name, []byte(prefix))
		if ok && mode>>12 == gitRegular && flags&flagStage == 0 {
			e.Name = name
			visit(e)
		}
	}
	return nil
}

// OIDSize finds out which hash the repository uses: an index ends with one over
// all of it. Where it was left out (it may be) the hash is the usual one.
func OIDSize(index io.Reader, size int64) (int, error) {
	sum, end := sha256.New(), make([]byte, sha256.Size)
	if size < sha256.Size {
		return sha1.Size, nil
	}
	if _, err := io.CopyN(sum, index, size-sha256.Size); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(index, end); err != nil {
		return 0, err
	}
	if bytes.Equal(sum.Sum(nil), end) {
		return sha256.Size, nil
	}
	return sha1.Size, nil
}

// parser walks the entries of an index.
type parser struct {
	in      *bufio.Reader
	version uint32
	oidSize int
	id      [sha256.Size]byte // of the last entry
	name    []byte            // likewise
}

// take reads n bytes, which are good until more is read.
func (p *parser) take(n int) ([]byte, error) {
	b, err := p.in.Peek(n)
	if err != nil {
		return nil, errFormat
	}
	_, err = p.in.Discard(n)
	return b, err
}

// toNUL reads what comes before the next NUL, and takes that away too.
func (p *parser) toNUL() ([]byte, error) {
	b, err := p.in.ReadSlice(0)
	if err != nil {
		return nil, errFormat
	}
	return b[:len(b)-1], nil
}

// entry reads one entry, leaving its name in p.name.
func (p *parser) entry() (e Entry, mode uint32, flags uint16, err error) {
	fixed, err := p.take(statPart + p.oidSize + 2)
	if err != nil {
		return e, 0, 0, err
	}
	num := func(at int) uint32 { return binary.BigEndian.Uint32(fixed[at:]) }
	e.File = File{
		ChangeTime: int64(num(0))*int64(time.Second) + int64(num(4)),
		ModTime:    int64(num(8))*int64(time.Second) + int64(num(12)),
		Ino:        num(20), Size: num(36),
	}
	e.ID = p.id[:copy(p.id[:], fixed[statPart:statPart+p.oidSize])]
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
	if n < nameMask {
		name, err := p.take(n)
		if err != nil {
			return err
		}
		p.name = append(p.name[:0], name...)
		_, err = p.take(8 - (used+n)%8)
		return err
	}
	name, err := p.toNUL() // it may be longer
	if err != nil {
		return err
	}
	p.name = append(p.name[:0], name...)
	_, err = p.take(7 - (used+len(name))%8)
	return err
}

// shortName reads a name that leaves out what it has in common with the last.
func (p *parser) shortName() error {
	cut, err := p.offset()
	if err != nil || cut > len(p.name) {
		return errFormat
	}
	rest, err := p.toNUL()
	if err != nil {
		return err
	}
	p.name = append(p.name[:len(p.name)-cut], rest...)
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
