package blob

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"
)

// Folder stores texts under names that the caller chooses. A file has the hash of its text and then the
// text, encoded like a content in a [Store]. The oldest files are removed to make room.
type Folder struct {
	store *Store // for its handle of the folder; no content is put into it
}

// OpenFolder returns the folder in dir. It creates nothing: the first text creates the directory.
func OpenFolder(dir string, o Options) *Folder { return &Folder{Open(dir, o)} }

// Save saves a text under a name, replacing any earlier one. If last is set, it syncs the text, so that
// it survives a crash of the machine.
func (f *Folder) Save(name string, text []byte, last bool) error {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(len(text)) > s.o.Quota {
		return ErrFull
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return err
	}
	if err := s.openRoot(); err != nil {
		return err
	}
	f.makeRoom(int64(len(text)))
	temp := unusedName()
	err := f.write(temp, text, last && !s.o.NoSync)
	if err == nil {
		err = s.writeDisk.Rename(temp, name)
	}
	if err != nil {
		_ = s.writeDisk.Remove(temp) // a leftover is swept later
		return err
	}
	if last && !s.o.NoSync {
		return disk.SyncDirs(s.writeDisk, ".")
	}
	return nil
}

// maxPlain is the length up to which a text is written uncompressed, since compression would delay the
// end of a program.
const maxPlain = 256 << 10

func (f *Folder) write(name string, text []byte, last bool) error {
	file, err := f.store.writeDisk.Open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	_, err = io.WriteString(file, hex.EncodeToString(sum[:]))
	switch {
	case err != nil:
	case len(text) <= maxPlain:
		_, err = file.Write(append([]byte{formatPlain}, text...))
	default:
		_, err = file.Write([]byte{formatPacked})
		err = errors.Join(err, deflate(file, bytes.NewReader(text)))
	}
	if err == nil && last {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// makeRoom removes the oldest files until need bytes fit, and files left by killed processes.
func (f *Folder) makeRoom(need int64) {
	s := f.store
	var all []fs.FileInfo
	for _, d := range readDir(s.root, ".") {
		info, err := d.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case !strings.HasPrefix(d.Name(), atomicfile.TempPrefix):
			all, need = append(all, info), need+info.Size()
		case s.o.Now != nil && s.o.Now().Sub(info.ModTime()) > maxTempAge:
			_ = s.root.Remove(d.Name())
		}
	}
	if need <= s.o.Quota {
		return
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range all {
		if need <= s.o.Quota-s.o.Quota/pruneFraction {
			break
		}
		if s.root.Remove(info.Name()) == nil {
			need -= info.Size()
		}
	}
}

// Read returns the text with this name, up to most bytes. The error is [fs.ErrNotExist] if there is
// none, and [ErrDamaged] if it has changed.
func (f *Folder) Read(name string, most int64) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	hash := make([]byte, 2*sha256.Size)
	if _, err := io.ReadFull(file, hash); err != nil {
		return nil, errors.Join(ErrDamaged, file.Close())
	}
	in, err := unpack(file, string(hash))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		err = ErrDamaged
	}
	return text, err
}

// Open returns a content that an earlier version saved here, under its hash alone.
func (f *Folder) Open(hash string) (io.ReadCloser, error) {
	if !IsHash(hash) {
		return nil, fs.ErrNotExist
	}
	file, err := f.open(hash)
	if err != nil {
		return nil, message.Errorf("open saved content %.12s: %w", hash, err)
	}
	return unpack(file, hash)
}

func (f *Folder) open(name string) (*os.File, error) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if err := f.store.openRoot(); err != nil {
		return nil, err
	}
	return f.store.openFile(name)
}

// Close closes the directory.
func (f *Folder) Close() error { return f.store.Close() }
