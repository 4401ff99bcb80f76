// Package blob stores contents under their SHA-256, each once, compressed where that helps:
//
//	<dir>/objects/ab/cdef…   one byte that says how, then the content
//	<dir>/tmp                contents being written
//
// [Store.Put] adds a content and [Store.Commit] makes it durable: it then survives a crash of the
// machine. Reads are verified against the name. A store never exceeds its quota; [Store.Prune] removes
// the least recently used contents, and only when called. Several processes may share a store.
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

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"
)

// DefaultQuota is the default limit for a store on disk, in bytes.
const DefaultQuota = 1 << 30

// ErrFull reports that a store's quota is exceeded.
var ErrFull = errors.New("the store of saved contents is full")

// ErrDamaged reports that a stored content has changed.
var ErrDamaged = errors.New("saved content is damaged")

// Options configure a Store. The zero value is valid.
type Options struct {
	Quota  int64            // bytes on disk; zero means [DefaultQuota]
	NoSync bool             // do not sync to disk
	Now    func() time.Time // dates the last use of a content; if nil, the time of writing counts

	// WrapDisk, if set, replaces [Below] for writes.
	WrapDisk func(*os.Root) disk.Disk
}

// Store is a content-addressed store. It is safe for concurrent use.
type Store struct {
	dir string
	o   Options

	mu        sync.Mutex        // guards the fields below
	root      *os.Root          // nil until first needed
	writeDisk disk.Disk         // root, for writes
	tempLock  *os.File          // lock on the directory of temporary files
	total     int64             // bytes in objects
	hasTotal  bool              // total has been computed
	folders   map[string]bool   // known folders of objects; another process may have created more
	pending   map[string]string // hash → temporary file, written but not committed
	// recentlyUsed are the hashes requested since the last commit, and between the two before. They are never
	// pruned, since the caller may not have recorded them yet.
	recentlyUsed [2]map[string]bool
}

// Open returns the store in dir. It creates nothing: the first content creates the directory.
func Open(dir string, o Options) *Store {
	if o.Quota <= 0 {
		o.Quota = DefaultQuota
	}
	if o.WrapDisk == nil {
		o.WrapDisk = disk.FromRoot
	}
	return &Store{dir: dir, o: o}
}

const (
	objectsDir = "objects"
	tempDir    = "tmp"
	dirMode    = 0o700 // contents may be secret
	fileMode   = 0o600

	packMin       = 4 << 10     // smaller contents take a block anyway
	sampleSize    = 64 << 10    // bytes compressed as a sample
	maxTempAge    = time.Hour   // age at which a temporary file counts as abandoned
	markInterval  = time.Minute // a blob used this recently is not marked again
	ignoreContent = "*\n"       // a .gitignore that ignores everything, including itself
	maxSyncers    = 8           // files synced concurrently

	manyFiles    = 64        // number of files from which to sync the whole file system
	formatPlain  = byte('r') // the content follows uncompressed
	formatPacked = byte('z') // the content follows deflated
)

// blobPath returns the path of a blob below the store's directory.
func (s *Store) blobPath(hash string) string {
	return path.Join(objectsDir, hash[:2], hash[2:])
}

// IsHash reports whether name has the form of a hash from Put.
func IsHash(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 2*sha256.Size
}

// Put saves content, read from its start, and returns its hash. It writes nothing if the store has it.
// The error is [ErrFull] if it would exceed the store's quota.
func (s *Store) Put(content io.ReadSeeker) (string, error) {
	hash, err := Digest(content)
	if err != nil {
		return "", message.Errorf("read content: %w", err)
	}
	if s.MarkUsed(hash) {
		return hash, nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", message.Errorf("read content: %w", err)
	}
	hash, err = s.write(content)
	if err != nil && !errors.Is(err, ErrFull) {
		err = message.Errorf("save content: %w", err)
	}
	return hash, err
}

// Digest returns the hash that Put would return for content, read from its start.
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

// Exists reports whether the store has ever been written.
func (s *Store) Exists() bool {
	_, err := os.Lstat(s.dir + "/" + objectsDir)
	return !errors.Is(err, fs.ErrNotExist)
}

// Has reports whether a content is stored.
func (s *Store) Has(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.statBlob(hash)
	return ok
}

// statBlob returns the info of hash's blob; nil for one not yet committed.
func (s *Store) statBlob(hash string) (fs.FileInfo, bool) {
	if !IsHash(hash) {
		return nil, false
	}
	if _, ok := s.pending[hash]; ok {
		return nil, true
	}
	if s.openRoot() != nil || s.hasTotal && !s.folders[hash[:2]] { // if it was added meanwhile, it is stored again
		return nil, false
	}
	info, err := s.root.Stat(s.blobPath(hash))
	if err != nil || info.Size() == 0 { // a complete blob is never empty
		return nil, false
	}
	return info, true
}

// MarkUsed reports whether a content is stored and, if so, marks it as used.
func (s *Store) MarkUsed(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, ok := s.statBlob(hash)
	if !ok {
		return false
	}
	s.protect(hash)
	if info == nil || s.o.Now == nil {
		return true
	}
	if now := s.o.Now(); now.Sub(info.ModTime()) > markInterval {
		_ = s.root.Chtimes(s.blobPath(hash), now, now) // on failure it only expires a little early
	}
	return true
}

// protect protects hash from pruning until two commits have passed.
func (s *Store) protect(hash string) {
	if s.recentlyUsed[0] == nil {
		s.recentlyUsed[0] = make(map[string]bool)
	}
	s.recentlyUsed[0][hash] = true
}

// openRoot opens the store's directory if it exists.
func (s *Store) openRoot() error {
	if s.root != nil {
		return nil
	}
	root, err := os.OpenRoot(s.dir + "/.") // a pipe with that name is not a directory, and does not block
	if err != nil {
		return err
	}
	s.root, s.writeDisk = root, s.o.WrapDisk(root)
	return nil
}

// openForWrite opens the store for writing, creating its directories if necessary, and measures its size.
func (s *Store) openForWrite() (disk.Disk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasTotal {
		return s.writeDisk, nil
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return nil, err
	}
	if err := s.openRoot(); err != nil {
		return nil, err
	}
	if err := s.createDirs(); err != nil {
		return nil, err
	}
	s.total = 0
	for _, o := range s.listObjects() {
		s.total += o.size
	}
	for _, temp := range s.pending {
		if info, err := s.root.Stat(temp); err == nil {
			s.total += info.Size()
		}
	}
	if s.o.Now != nil {
		for _, d := range readDir(s.root, tempDir) {
			if info, err := d.Info(); err == nil && s.o.Now().Sub(info.ModTime()) > maxTempAge {
				_ = s.root.Remove(path.Join(tempDir, d.Name()))
			}
		}
	}
	s.hasTotal = true
	return s.writeDisk, nil
}

// createDirs creates the folders in the store's directory.
func (s *Store) createDirs() error {
	for _, dir := range []string{objectsDir, tempDir} {
		if err := disk.MkdirAll(s.writeDisk, dir, dirMode); err != nil {
			return err
		}
	}
	if s.tempLock == nil { // protects temporary files from sweeps
		f, err := s.root.OpenFile(tempDir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		s.tempLock = f
		atomicfile.HoldOpenDir(f)
	}
	if f, err := s.root.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode); err == nil {
		_, _ = f.WriteString(ignoreContent) // a failure loses nothing
		_ = f.Close()
	}
	return nil
}

// write writes content to a temporary file that Commit renames.
func (s *Store) write(content io.Reader) (hash string, err error) {
	out, err := s.openForWrite()
	if err != nil {
		return "", err
	}
	var f disk.File
	temp := ""
	for temp == "" || errors.Is(err, fs.ErrExist) {
		temp = path.Join(tempDir, unusedName())
		f, err = out.Open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	}
	if err != nil {
		return "", err
	}
	hash, size, err := pack(f, content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.register(hash, temp, size)
	}
	if err != nil {
		_ = out.Remove(temp) // a leftover is swept later
		return "", err
	}
	return hash, nil
}

// unusedName returns a name for a temporary file.
func unusedName() string {
	return fmt.Sprintf("%s%d-%d", atomicfile.TempPrefix, os.Getpid(), serial.Add(1))
}

var serial atomic.Int64 // of temporary files

// register registers a complete temporary file.
func (s *Store) register(hash, temp string, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pending[hash]; ok { // another goroutine was faster
		return s.writeDisk.Remove(temp)
	}
	if s.total+size > s.o.Quota {
		return ErrFull
	}
	if s.pending == nil {
		s.pending = make(map[string]string)
	}
	s.pending[hash] = temp
	s.protect(hash)
	s.total += size
	return nil
}

// Commit makes everything put so far durable. What fails counts as never put.
func (s *Store) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recentlyUsed = [2]map[string]bool{nil, s.recentlyUsed[0]}
	pending := s.pending
	s.pending = nil
	if len(pending) == 0 {
		return nil
	}
	err := s.syncFiles(pending)
	if err == nil {
		err = s.renameFiles(pending)
	}
	if err != nil {
		for _, temp := range pending {
			_ = s.writeDisk.Remove(temp)
		}
		s.hasTotal = false // measure again
		return message.Errorf("save contents: %w", err)
	}
	return nil
}

// syncFiles syncs the pending files, several at a time.
func (s *Store) syncFiles(pending map[string]string) error {
	if s.o.NoSync || len(pending) > manyFiles && s.syncAll() == nil {
		return nil
	}
	names := make(chan string, len(pending))
	for _, temp := range pending {
		names <- temp
	}
	close(names)
	errs := make([]error, min(maxSyncers, len(pending)))
	var crew sync.WaitGroup
	for i := range errs {
		crew.Go(func() {
			for name := range names {
				errs[i] = errors.Join(errs[i], s.writeDisk.Sync(name))
			}
		})
	}
	crew.Wait()
	return errors.Join(errs...)
}

// renameFiles gives the pending files their names, and syncs those.
func (s *Store) renameFiles(pending map[string]string) error {
	dirs := make(map[string]bool)
	for hash, temp := range pending {
		to := s.blobPath(hash)
		var err error = fs.ErrNotExist
		if s.folders[hash[:2]] {
			err = s.writeDisk.Rename(temp, to)
		}
		if errors.Is(err, fs.ErrNotExist) { // the folder is missing, or another process removed it
			if err = disk.MkdirAll(s.writeDisk, path.Dir(to), dirMode); err == nil {
				dirs[objectsDir], s.folders[hash[:2]] = true, true
				err = s.writeDisk.Rename(temp, to)
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
	return disk.SyncDirs(s.writeDisk, slices.Collect(maps.Keys(dirs))...)
}

// syncAll syncs everything written at once.
func (s *Store) syncAll() error {
	f, err := s.writeDisk.Open(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFileSystem(f)
}

// Open returns a stored content. Reading it to the end fails if it has changed. The error is
// [fs.ErrNotExist] if it is not stored.
func (s *Store) Open(hash string) (io.ReadCloser, error) {
	f, err := s.openBlob(hash)
	if err != nil {
		return nil, message.Errorf("open saved content %.12s: %w", hash, err)
	}
	return unpack(f, hash)
}

// unpack decodes the output of pack, from f's current position.
func unpack(f *os.File, hash string) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(f, sampleSize)
	how, err := in.ReadByte()
	b := &blob{f: f, in: in, hasher: sha256.New(), hash: hash}
	switch {
	case err == nil && how == formatPacked:
		b.in = flate.NewReader(in)
	case err != nil || how != formatPlain:
		f.Close()
		return nil, message.Errorf("open saved content %.12s: %w", hash, ErrDamaged)
	}
	return b, nil
}

// openBlob opens the file of a content, and nothing that could block.
func (s *Store) openBlob(hash string) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !IsHash(hash) {
		return nil, fs.ErrNotExist
	}
	if err := s.openRoot(); err != nil {
		return nil, err
	}
	return s.openFile(cmp.Or(s.pending[hash], s.blobPath(hash)))
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

// blob is a stored content being read.
type blob struct {
	f      *os.File
	in     io.Reader
	hasher hash.Hash
	hash   string
}

func (b *blob) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.hasher.Write(p[:n])
	switch {
	case err == io.EOF && hex.EncodeToString(b.hasher.Sum(nil)) != b.hash:
		err = ErrDamaged
	case err != nil && err != io.EOF:
		err = errors.Join(ErrDamaged, err)
	}
	return n, err
}

func (b *blob) Close() error { return b.f.Close() }

// Close closes the store's directory.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return nil
	}
	err := s.root.Close()
	if s.tempLock != nil {
		err = errors.Join(err, s.tempLock.Close())
	}
	s.root, s.writeDisk, s.tempLock, s.hasTotal = nil, nil, nil, false
	return err
}
