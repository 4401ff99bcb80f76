// Package blob keeps contents under their SHA-256, each once, compressed where
// that helps:
//
//	<dir>/objects/ab/cdef…   one byte that says how, then the content
//	<dir>/tmp                contents being written
//
// A content is put in with [Store.Put] and is safe after [Store.Commit]: then it
// outlives the machine. What is read is checked against its name. A store never
// grows beyond its quota; what has not been of use for longest goes first, and
// only when [Store.Prune] is called. Several processes may use one store.
package blob

import (
	"bufio"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"
)

// DefaultQuota is how many bytes a store may take up on the disk.
const DefaultQuota = 1 << 30

// ErrFull is the error of putting more into a store than its quota allows.
var ErrFull = errors.New("the store of saved contents is full")

// ErrDamaged is the error of reading a content that is not the one that was put in.
var ErrDamaged = errors.New("saved content is damaged")

// Options say how a store behaves. The zero value is fine.
type Options struct {
	Quota  int64            // bytes on the disk; zero means [DefaultQuota]
	NoSync bool             // do not wait for the disk
	Now    func() time.Time // tells when a content was last of use; without it, when it was written

	// On, if set, is what the store writes to instead of [Below].
	On func(*os.Root) disk.Disk
}

// Store is a store of contents. It is safe for concurrent use.
type Store struct {
	dir string
	o   Options

	mu      sync.Mutex        // guards the fields below
	root    *os.Root          // nil until first needed
	out     disk.Disk         // the same, to write to
	held    *os.File          // the directory of temporary files, from the first one on
	total   int64             // bytes in objects
	known   bool              // total has been measured
	folders map[string]bool   // those of objects that were seen; another process may have made more
	pending map[string]string // hash → temporary file, written but not committed
	// used are the hashes asked for since the last commit, and those asked for
	// before it since the one before. They are never pruned: whoever asked may
	// not have put them on record yet.
	used [2]map[string]bool
}

// Open returns the store in dir. It touches nothing: the directory is made
// when there is something to put into it.
func Open(dir string, o Options) *Store {
	if o.Quota <= 0 {
		o.Quota = DefaultQuota
	}
	if o.On == nil {
		o.On = disk.Below
	}
	return &Store{dir: dir, o: o}
}

const (
	objects   = "objects"
	temporary = "tmp"
	dirMode   = 0o700 // what is kept may be secret
	fileMode  = 0o600

	packMin = 4 << 10     // smaller contents take a block whatever we do
	probe   = 64 << 10    // of a content, to see whether packing helps
	stale   = time.Hour   // after which a temporary file belongs to nobody
	recent  = time.Minute // a blob used within that time is not marked again
	ignore  = "*\n"       // a .gitignore that ignores all, itself included
	syncers = 8           // files synced at a time

	manyFiles = 64        // from where on the whole file system is synced at once
	plain     = byte('r') // the content follows as it is
	packed    = byte('z') // the content follows deflated
)

// place is where a blob lies below the store's directory.
func (s *Store) place(hash string) string {
	return path.Join(objects, hash[:2], hash[2:])
}

// IsHash reports whether name is one that Put gives.
func IsHash(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 2*sha256.Size
}

// Put keeps what content holds, from its beginning, and returns its hash. If it
// is there already nothing is written. The error is [ErrFull] if it would take
// the store beyond its quota.
func (s *Store) Put(content io.ReadSeeker) (string, error) {
	hash, err := Digest(content)
	if err != nil {
		return "", fmt.Errorf("read content: %w", err)
	}
	if s.Use(hash) {
		return hash, nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("read content: %w", err)
	}
	hash, err = s.write(content)
	if err != nil && !errors.Is(err, ErrFull) {
		err = fmt.Errorf("save content: %w", err)
	}
	return hash, err
}

// Digest is the hash that Put would give to content, which is read from its
// beginning.
func Digest(content io.ReadSeeker) (string, error) {
	sum := sha256.New()
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(sum, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Has reports whether a content is kept.
func (s *Store) Has(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.find(hash)
	return ok
}

// find describes the blob of hash; one not yet committed has no description.
func (s *Store) find(hash string) (fs.FileInfo, bool) {
	if !IsHash(hash) {
		return nil, false
	}
	if _, ok := s.pending[hash]; ok {
		return nil, true
	}
	if s.openRoot() != nil || s.known && !s.folders[hash[:2]] { // if it was put there since, it is put there twice
		return nil, false
	}
	info, err := s.root.Stat(s.place(hash))
	if err != nil || info.Size() == 0 { // nothing we finished is empty
		return nil, false
	}
	return info, true
}

// Use reports whether a content is kept and, if so, marks it as still of use.
func (s *Store) Use(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, ok := s.find(hash)
	if !ok {
		return false
	}
	s.spare(hash)
	if info == nil || s.o.Now == nil {
		return true
	}
	if now := s.o.Now(); now.Sub(info.ModTime()) > recent {
		_ = s.root.Chtimes(s.place(hash), now, now) // it only grows old a little early
	}
	return true
}

// spare saves hash from being pruned until two commits have passed.
func (s *Store) spare(hash string) {
	if s.used[0] == nil {
		s.used[0] = make(map[string]bool)
	}
	s.used[0][hash] = true
}

// openRoot opens the store's directory if there is one.
func (s *Store) openRoot() error {
	if s.root != nil {
		return nil
	}
	root, err := os.OpenRoot(s.dir + "/.") // a pipe of that name is no directory, and is not waited for
	if err != nil {
		return err
	}
	s.root, s.out = root, s.o.On(root)
	return nil
}

// make opens the store for writing, making its directories if need be, and
// measures what is in it.
func (s *Store) make() (disk.Disk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.out, nil
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return nil, err
	}
	if err := s.openRoot(); err != nil {
		return nil, err
	}
	if err := s.furnish(); err != nil {
		return nil, err
	}
	s.total = 0
	for _, o := range s.list() {
		s.total += o.size
	}
	for _, temp := range s.pending {
		if info, err := s.root.Stat(temp); err == nil {
			s.total += info.Size()
		}
	}
	if s.o.Now != nil {
		for _, d := range readDir(s.root, temporary) {
			if info, err := d.Info(); err == nil && s.o.Now().Sub(info.ModTime()) > stale {
				_ = s.root.Remove(path.Join(temporary, d.Name()))
			}
		}
	}
	s.known = true
	return s.out, nil
}

// furnish makes the folders in the store's directory.
func (s *Store) furnish() error {
	for _, dir := range []string{objects, temporary} {
		if err := disk.MkdirAll(s.out, dir, dirMode); err != nil {
			return err
		}
	}
	if s.held == nil { // keeps our temporary files from being swept
		f, err := s.root.OpenFile(temporary, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		s.held = f
		atomicfile.HoldOpen(f)
	}
	if f, err := s.root.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode); err == nil {
		_, _ = f.WriteString(ignore) // where it cannot be written nothing is lost
		_ = f.Close()
	}
	return nil
}

// write puts content into a temporary file that Commit will give its name.
func (s *Store) write(content io.Reader) (hash string, err error) {
	out, err := s.make()
	if err != nil {
		return "", err
	}
	var f disk.File
	temp := ""
	for temp == "" || errors.Is(err, fs.ErrExist) {
		temp = path.Join(temporary, unusedName())
		f, err = out.Open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	}
	if err != nil {
		return "", err
	}
	hash, size, err := pack(f, content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.enlist(hash, temp, size)
	}
	if err != nil {
		_ = out.Remove(temp) // what is left is swept later
		return "", err
	}
	return hash, nil
}

// unusedName is a name for a temporary file.
func unusedName() string {
	return fmt.Sprintf("%s%d-%d", atomicfile.Prefix, os.Getpid(), serial.Add(1))
}

var serial atomic.Int64 // of temporary files

// enlist takes a finished temporary file into account.
func (s *Store) enlist(hash, temp string, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pending[hash]; ok { // someone was faster
		return s.out.Remove(temp)
	}
	if s.total+size > s.o.Quota {
		return ErrFull
	}
	if s.pending == nil {
		s.pending = make(map[string]string)
	}
	s.pending[hash] = temp
	s.spare(hash)
	s.total += size
	return nil
}

// Commit makes everything put in so far last. What it could not make last is
// as if it had not been put in.
func (s *Store) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = [2]map[string]bool{nil, s.used[0]}
	pending := s.pending
	s.pending = nil
	if len(pending) == 0 {
		return nil
	}
	err := s.syncFiles(pending)
	if err == nil {
		err = s.nameFiles(pending)
	}
	if err != nil {
		for _, temp := range pending {
			_ = s.out.Remove(temp)
		}
		s.known = false // measure again
		return fmt.Errorf("save contents: %w", err)
	}
	return nil
}

// syncFiles sees the pending files on the disk, several at a time.
func (s *Store) syncFiles(pending map[string]string) error {
	if s.o.NoSync || len(pending) > manyFiles && s.syncAll() == nil {
		return nil
	}
	names := make(chan string, len(pending))
	for _, temp := range pending {
		names <- temp
	}
	close(names)
	errs := make([]error, min(syncers, len(pending)))
	var crew sync.WaitGroup
	for i := range errs {
		crew.Go(func() {
			for name := range names {
				errs[i] = errors.Join(errs[i], s.out.Sync(name))
			}
		})
	}
	crew.Wait()
	return errors.Join(errs...)
}

// nameFiles gives the pending files their names, and sees those on the disk.
func (s *Store) nameFiles(pending map[string]string) error {
	dirs := make(map[string]bool)
	for hash, temp := range pending {
		to := s.place(hash)
		var err error = fs.ErrNotExist
		if s.folders[hash[:2]] {
			err = s.out.Rename(temp, to)
		}
		if errors.Is(err, fs.ErrNotExist) { // the folder, or another process removed it
			if err = disk.MkdirAll(s.out, path.Dir(to), dirMode); err == nil {
				dirs[objects], s.folders[hash[:2]] = true, true
				err = s.out.Rename(temp, to)
			}
		}
		if err != nil {
			return err
		}
		dirs[path.Dir(to)] = true
	}
	if s.o.NoSync || len(dirs) > manyFiles && s.syncAll() == nil {
		return nil
	}
	return disk.SyncDirs(s.out, slices.Collect(maps.Keys(dirs))...)
}

// syncAll sees all that was written on the disk in one go.
func (s *Store) syncAll() error {
	f, err := s.out.Open(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFileSystem(f)
}

// Open returns a kept content. Reading it to its end fails if it is not the one
// that was put in. The error is [fs.ErrNotExist] if it is not kept.
func (s *Store) Open(hash string) (io.ReadCloser, error) {
	f, err := s.openBlob(hash)
	if err != nil {
		return nil, fmt.Errorf("open saved content %.12s: %w", hash, err)
	}
	return unpack(f, hash)
}

// unpack reads what pack wrote, from where the file is.
func unpack(f *os.File, hash string) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(f, probe)
	how, err := in.ReadByte()
	b := &blob{f: f, in: in, sum: sha256.New(), hash: hash}
	switch {
	case err == nil && how == packed:
		b.in = flate.NewReader(in)
	case err != nil || how != plain:
		f.Close()
		return nil, fmt.Errorf("open saved content %.12s: %w", hash, ErrDamaged)
	}
	return b, nil
}

// openBlob opens the file of a content, and nothing that would have to be waited
// for.
func (s *Store) openBlob(hash string) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !IsHash(hash) {
		return nil, fs.ErrNotExist
	}
	if err := s.openRoot(); err != nil {
		return nil, err
	}
	return s.openFile(cmp.Or(s.pending[hash], s.place(hash)))
}

func (s *Store) openFile(name string) (*os.File, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(ErrDamaged, err, f.Close())
	}
	return f, nil
}

// blob is a kept content being read.
type blob struct {
	f    *os.File
	in   io.Reader
	sum  hash.Hash
	hash string
}

func (b *blob) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.sum.Write(p[:n])
	switch {
	case err == io.EOF && hex.EncodeToString(b.sum.Sum(nil)) != b.hash:
		err = ErrDamaged
	case err != nil && err != io.EOF:
		err = errors.Join(ErrDamaged, err)
	}
	return n, err
}

func (b *blob) Close() error { return b.f.Close() }

// Close lets the store's directory go.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return nil
	}
	err := s.root.Close()
	if s.held != nil {
		err = errors.Join(err, s.held.Close())
	}
	s.root, s.out, s.held, s.known = nil, nil, nil, false
	return err
}
