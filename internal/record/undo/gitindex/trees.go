package gitindex

import (
	"bytes"
	"encoding/hex"
	"path"
	"strconv"
)

// Trees maps the folders of an index whose files equal a stored git tree, "" being the root, to that
// tree's id.
type Trees map[string]string

// maxDepth limits the nesting of folders.
const maxDepth = 1000

// ReadTrees reads the trees in an index. Git removes a tree's entry when it stages something in the
// folder. It returns an error if the index is incomplete: split, sparse or damaged, or without trees.
func ReadTrees(text []byte, oidSize int) (Trees, error) {
	files := 0
	rest, err := visitEntries(text, oidSize, func(Entry, uint32, uint16) { files++ })
	if err != nil {
		return nil, err
	}
	var stored []byte
	whole := true
	err = eachExtension(rest, oidSize, func(name string, text []byte) {
		switch name {
		case "TREE":
			stored = text
		case "link", "sdir":
			whole = false
		}
	})
	if err != nil || !whole || stored == nil {
		return nil, errFormat
	}
	p := treeReader{rest: stored, oidSize: oidSize, trees: make(Trees)}
	if n := p.readFolder("", 0); p.failed || len(p.rest) > 0 || n >= 0 && n != files {
		return nil, errFormat
	}
	return p.trees, nil
}

// treeReader parses the trees of an index.
type treeReader struct {
	rest    []byte
	oidSize int
	trees   Trees
	failed  bool
}

// readFolder reads a folder and its subfolders, and returns how many files the folder has; -1 if no stored
// tree equals it.
func (p *treeReader) readFolder(above string, depth int) (files int) {
	name := string(p.readUntil(0))
	files, below := p.readNumber(' '), p.readNumber('\n')
	if (name == "") != (depth == 0) || files < -1 || below < 0 || below > len(p.rest) || depth > maxDepth {
		p.failed = true
	}
	if p.failed {
		return -1
	}
	folder := path.Join(above, name)
	if files >= 0 {
		if len(p.rest) < p.oidSize {
			p.failed = true
			return -1
		}
		p.trees[folder] = hex.EncodeToString(p.rest[:p.oidSize])
		p.rest = p.rest[p.oidSize:]
	}
	within := 0
	for range below {
		if p.failed {
			break
		}
		within += max(p.readFolder(folder, depth+1), 0)
	}
	if files >= 0 && within > files {
		p.failed = true
	}
	return files
}

// readUntil returns the text before a byte and consumes both.
func (p *treeReader) readUntil(end byte) []byte {
	before, after, ok := bytes.Cut(p.rest, []byte{end})
	p.failed = p.failed || !ok
	p.rest = after
	return before
}

func (p *treeReader) readNumber(end byte) int {
	n, err := strconv.Atoi(string(p.readUntil(end)))
	p.failed = p.failed || err != nil
	return n
}
