package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// stdin is the content of standard input, as far as it matters to a shell that would run it.
type stdin struct {
	kind stdinKind
	text string
}

type stdinKind uint8

const (
	stdinUnknown  stdinKind = iota // unspecified, or a file
	stdinLiteral                   // text, from a here-document or a here-string
	stdinComputed                  // the same, with parts known only at run time
	stdinPiped                     // another command's output
	stdinFetched                   // the same, from the network
)

func (w *walker) judgeRedirect(r *syntax.Redirect) {
	target := w.evalWord(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		w.saveHereDocument(r)
	case syntax.WordHdoc:
		w.stdin = stdin{kind: stdinLiteral, text: target.text}
		if !target.isExact() {
			w.stdin.kind = stdinComputed
		}
	case syntax.RdrIn:
		w.stdin = stdin{}
		if target.isExact() && (strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/")) {
			w.addFinding(Approve, connects, target.text) // some shells connect
		}
		if target.isExact() {
			w.report.Reads = append(w.report.Reads, w.possiblePaths(target)...)
		}
	case syntax.DplIn:
		w.judgeDuplicate(r)
		w.stdin = stdin{}
	case syntax.DplOut:
		w.judgeDuplicate(r)
		if !target.isExact() {
			w.recordEffect(writeReason)
		} else if !isDescriptor(target.text) {
			w.judgeOutputFile(target, true)
		}
	case syntax.AppOut, syntax.AppAll:
		w.judgeOutputFile(target, false)
	default: // all that truncate the file, or overwrite its beginning
		w.judgeOutputFile(target, true)
	}
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		w.recordEffect(dialectReason)
	}
}

// judgeDuplicate judges the word after >& and <&, which bash expands once more after it removes the quotes.
func (w *walker) judgeDuplicate(r *syntax.Redirect) {
	if strings.ContainsAny(w.sourceText(r.Word), "$`") {
		w.addUnknown("a descriptor that cannot be known in advance", w.sourceText(r.Word))
	}
}

// judgeOutputFile judges a file that output goes to. A workspace file
// counts like any written file; anything else is riskier.
func (w *walker) judgeOutputFile(target arg, truncates bool) {
	switch {
	case target.isExact() && isSink(target.text):
	case !target.isExact() || slices.ContainsFunc(w.possiblePaths(target), w.isOutside):
		w.report.Redirected = true
		w.judgeWrite(target, truncates)
	default:
		w.recordNotReadOnly(writeReason)
		places := w.possiblePaths(target)
		w.report.Redirects = append(w.report.Redirects, places...)
		w.judgeWrites(places, truncates)
	}
}

// isOutside reports whether a path is not in the workspace, or is a link out of it.
func (w *walker) isOutside(p string) bool {
	return !path.IsAbs(p) || !w.facts.isInside(p) || !w.facts.isInside(w.facts.real(p))
}

// writeReason is the reason why a line that writes is not read-only.
const writeReason = "the output goes to a file"

func isDescriptor(s string) bool {
	return s == "-" || s != "" && strings.Trim(s, "0123456789") == "" // 2- is a file in some shells
}

// saveHereDocument saves the text for a command. With a quoted delimiter, the text is literal.
func (w *walker) saveHereDocument(r *syntax.Redirect) {
	w.stdin = stdin{kind: stdinLiteral}
	if w.substitutionEnd > 0 && (r.Hdoc == nil || r.Hdoc.Pos().Offset() >= w.substitutionEnd) {
		w.addUnknown("a here-document that begins where a substitution ended", w.sourceText(r))
	}
	if r.Hdoc == nil {
		return
	}
	var b wordBuilder
	for _, p := range r.Hdoc.Parts {
		if lit, ok := p.(*syntax.Lit); !ok {
			w.addPart(&b, p)
		} else if isQuotedDelimiter(r.Word) {
			b.WriteString(lit.Value)
		} else {
			b.WriteString(unquote(lit.Value, "$`\\\n"))
		}
	}
	if w.stdin.text = b.String(); b.certainty != exact {
		w.stdin.kind = stdinComputed
	}
}

func isQuotedDelimiter(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return !ok || strings.Contains(lit.Value, `\`)
	})
}

// judgeWrite judges a file that is opened for writing, and truncated first if truncates.
func (w *walker) judgeWrite(a arg, truncates bool) {
	if a.isExact() && isSink(a.text) {
		return
	}
	w.recordEffect(writeReason)
	if !a.isExact() {
		if truncates {
			w.addFinding(Approve, "overwrites a file that cannot be known in advance", a.text)
		}
		return
	}
	w.judgeWrites(w.possiblePaths(a), truncates)
}

func (w *walker) judgeWrites(places []string, truncates bool) {
	w.report.Writes = append(w.report.Writes, places...)
	for _, p := range places {
		switch why := w.facts.protectedReason(p); {
		case strings.HasPrefix(p, "/dev/tcp/"), strings.HasPrefix(p, "/dev/udp/"):
			w.addFinding(Approve, connects, p)
		case isDisk(p):
			w.addFinding(Block, "writes to a disk or to memory", p)
		case p == "/proc/sysrq-trigger":
			w.addFinding(Block, "stops the machine", p)
		case why != "":
			w.addFinding(Approve, "writes to "+why, p)
		case truncates && (!path.IsAbs(p) || w.facts.exists(p)):
			w.addFinding(Approve, "overwrites an existing file", p)
		}
	}
}

// isSink reports whether writing to p loses nothing.
func isSink(p string) bool {
	switch p = path.Clean(p); p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	n, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && isDescriptor(n)
}

// possiblePaths returns the paths that a word may name: one for every directory
// the shell may be in, or the word itself if those are unknown.
func (w *walker) possiblePaths(a arg) []string {
	p := a.text
	if a.hasTilde && (p == "~" || strings.HasPrefix(p, "~/")) && w.facts.Home != "" {
		p = w.facts.Home + p[1:]
	}
	if path.IsAbs(p) {
		return []string{path.Clean(p)}
	}
	var ps []string
	for _, dir := range w.dirs {
		ps = append(ps, path.Join(dir, p))
	}
	if w.dirUnknown || len(ps) == 0 {
		ps = append(ps, path.Clean(p))
	}
	return ps
}

// mayRead records a variable's value: it may be the name of a file that a later command reads.
func (w *walker) mayRead(a arg) {
	if a.isExact() && a.text != "" {
		w.report.Reads = append(w.report.Reads, w.possiblePaths(a)...)
	}
}

// outsideReason is the reason why a change of directory is more than reading.
const outsideReason = "it goes outside the workspace, or to an unknown place"

// judgeCd follows the shell to another directory. If the directory
// does not exist yet, cd may fail and the shell stay.
//
// It reports whether the shell certainly stays in the workspace.
func (w *walker) judgeCd(args []arg) (stays bool) {
	w.nextDirs = nil
	var operands []arg
	for _, a := range args[1:] {
		if len(operands) > 0 || !a.isOneOf("-P", "-L", "--") {
			operands = append(operands, a)
		}
	}
	if len(operands) == 0 {
		operands = []arg{{text: "~", hasTilde: true}}
	}
	to := operands[0]
	if len(operands) > 1 || !to.isExact() || to.text == "-" || to.text == "" {
		w.dirUnknown = true
		w.recordEffect(outsideReason)
		return false
	}
	places := w.possiblePaths(to)
	stays = true
	for _, p := range places {
		w.dirUnknown = w.dirUnknown || !path.IsAbs(p)
		if !path.IsAbs(p) || !w.facts.isInside(p) {
			w.recordEffect(outsideReason)
			stays = false
		}
	}
	places = slices.DeleteFunc(slices.Clone(places), func(p string) bool { return !path.IsAbs(p) })
	w.nextDirs = places
	for _, p := range places {
		if !w.facts.exists(p) {
			places = union(places, w.dirs)
			break
		}
	}
	w.dirs = places
	return stays
}

func endsInCd(s *syntax.Stmt) bool {
	if redirectsAll(s) {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return len(c.Args) > 0 && c.Args[0].Lit() == "cd" && !s.Background && !s.Negated
	case *syntax.BinaryCmd:
		return c.Op == syntax.AndStmt && endsInCd(c.Y)
	}
	return false
}

var diskPaths = []string{
	"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "loop", "mapper/", "sr", "nbd", "zram", "ram",
	"pmem",
	"mem", "kmem", "port",
}

// isDisk reports whether a path names a disk, or the machine's memory.
func isDisk(p string) bool {
	name, ok := strings.CutPrefix(p, "/dev/")
	return ok && slices.ContainsFunc(diskPaths, func(d string) bool { return strings.HasPrefix(name, d) })
}

// isRoot reports whether a word may name the root directory, or everything in it.
func (w *walker) isRoot(a arg) bool {
	if a.certainty == dynamic {
		return false
	}
	for _, p := range w.possiblePaths(a) {
		for {
			last := path.Base(p)
			if p == "/" || strings.Trim(last, "*.?{},") != "" || !strings.Contains(last, "*") {
				break
			}
			p = path.Dir(p)
		}
		if p == "/" {
			return true
		}
	}
	return false
}

func (w *walker) isDisk(a arg) bool {
	return a.certainty != dynamic && slices.ContainsFunc(w.possiblePaths(a), isDisk)
}
