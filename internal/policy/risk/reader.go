package risk

import (
	"path"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/lazy"
)

// A reader is a command that only reads with known words.
type reader struct {
	options
	maxOperands int              // maximum operands; 0 is any number
	check       func([]arg) bool // replaces the check of options
}

// freeReaders are the readers that no option, and so no word at all, can make write or run anything.
var freeReaders = wordList(`ls dir vdir cat head tail wc cut tr pwd whoami id groups logname uname nproc uptime which whereis type echo
	true false : basename dirname realpath readlink stat du df free nl tac rev fold expand unexpand paste join comm cmp
	cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum md5 shasum od hexdump strings column seq sleep
	grep egrep fgrep zgrep printenv getconf locale pgrep lsblk lscpu lsmod jq numfmt tsort factor expr sw_vers lsb_release cal
	users who w last pathchk yes`)

var readers = sync.OnceValue(func() map[string]reader {
	return map[string]reader{
		"sort": {options: newOptions("bdfghiMnRrVcCmsuz", "kSt",
			"reverse unique numeric-sort human-numeric-sort version-sort general-numeric-sort month-sort "+
				"ignore-case ignore-leading-blanks dictionary-order stable check[= zero-terminated key= field-separator= parallel= buffer-size= random-sort merge")},
		"uniq": {options: newOptions("cdDuizu", "fsw",
			"count repeated all-repeated[= unique ignore-case zero-terminated skip-fields= skip-chars= check-chars="),
			maxOperands: 1},
		"diff": {options: newOptions("abBcdeEiNnpqrstTuwyZ#", "CUFIWxX",
			"unified[= context[= brief recursive side-by-side ignore-all-space ignore-space-change "+
				"ignore-blank-lines ignore-case new-file text minimal report-identical-files width= exclude= color[= suppress-common-lines label= "+
				"strip-trailing-cr no-dereference show-c-function normal")},
		"file": {options: newOptions("bhikLnNrs0E", "eFfmP",
			"brief mime mime-type mime-encoding dereference no-dereference extension no-pad raw separator= apple special-files")},
		"tree": {options: newOptions("adfilLxpshugDFqNQrtcUvAJXCnS", "LPI",
			"noreport dirsfirst filesfirst prune gitignore du si matchdirs ignore-case inodes device sort= charset= filelimit= version help")},
		"date": {options: newOptions("uR", "drI", "utc universal rfc-email date= reference= iso-8601[= rfc-3339= debug"),
			check: nil},
		"printf": {check: func(as []arg) bool {
			return allLiteral(as) &&
				(len(as) == 0 || !strings.HasPrefix(as[0].text, "-"))
		}},
		"test": {check: testReads}, "[": {check: func(as []arg) bool {
			return allLiteral(as) || len(as) > 0 && as[len(as)-1].isOneOf("]") && testReads(as[:len(as)-1])
		}},
		"read": {check: setsOrdinaryVars},
		"unzip": {check: func(as []arg) bool {
			return len(as) > 1 && as[0].isOneOf("-l", "-v", "-lv", "-Z1") && hasOnlyOperands(as[1:])
		}},
		"zcat": {check: hasOnlyOperands}, "gzcat": {check: hasOnlyOperands}, "bzcat": {check: hasOnlyOperands},
		"xzcat": {check: hasOnlyOperands}, "zstdcat": {check: hasOnlyOperands},
		"hostname": {options: newOptions("adfiIsAy", "", "fqdn short ip-address all-ip-addresses domain all-fqdns"),
			maxOperands: -1},
		"xxd":    {options: newOptions("abceEipuds", "cglos", ""), maxOperands: 1},
		"rg":     {options: ripgrepOptions},
		"sed":    {check: sedReads},
		"go":     {check: goReads},
		"base64": {options: newOptions("diD", "wb", "decode ignore-garbage wrap= break=")},
		"base32": {options: newOptions("di", "w", "decode ignore-garbage wrap=")},
		"tput":   {options: newOptions("", "", ""), maxOperands: 1},
		"getent": {check: func(as []arg) bool { // other lookups go to the network and thus reveal something
			return allLiteral(as) && len(as) > 0 && as[0].isOneOf("passwd", "group", "shells", "services", "protocols")
		}},
		"ps": {check: listsProcesses},
	}
})

var ripgrepOptions = newOptions("nilLcvwxsSaFPoUuHINpq0b.Vh", "eftTgmMABCrjdEkE",
	"line-number no-line-number ignore-case smart-case case-sensitive files-with-matches files-without-match "+
		"count count-matches invert-match word-regexp line-regexp text fixed-strings pcre2 only-matching multiline multiline-dotall unrestricted hidden no-ignore "+
		"no-ignore-vcs with-filename no-filename heading no-heading pretty quiet null files type-list no-messages json vimgrep column stats trim follow "+
		"regexp= file= type= type-not= glob= iglob= max-count= max-columns= after-context= before-context= context= replace= threads= max-depth= "+
		"max-filesize= sort= sortr= color= colors= encoding= engine= passthru byte-offset no-config version help glob-case-insensitive")

// versionPrograms are the programs that only print their version if that is all they are asked.
var versionPrograms = wordList("git node npm python python3 pip pip3 ruby perl php java gcc g++ cc clang make cmake docker curl wget rg jq bash tar")

// shortVersionOptions are the programs with a short version option.
var shortVersionOptions = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"node": "-v", "npm": "-v", "ruby": "-v", "perl": "-v", "make": "-v",
		"python": "-V", "python3": "-V", "pip": "-V", "pip3": "-V",
	}
})

func isVersionQuery(args []arg) bool {
	if len(args) != 2 || !args[1].isExact() {
		return false
	}
	name, asked := args[0].text, args[1].text
	return asked == "--version" && versionPrograms.has(name) || asked == shortVersionOptions()[name] && asked != ""
}

// versionManagerFiles are the files by which a project selects the program behind a
// name if a version manager is installed: perhaps one of its own.
var versionManagerFiles = []string{
	".tool-versions", "mise.toml", ".mise.toml", ".mise", ".rtx.toml", ".python-version", ".node-version", ".ruby-version",
	".java-version", ".sdkmanrc",
}

// hasVersionManagerFile reports whether a switches file exists where the shell may be, or above that in the workspace.
func (w *walker) hasVersionManagerFile() bool {
	return w.dirUnknown || slices.ContainsFunc(w.dirs, func(dir string) bool {
		for ; w.facts.isInside(dir); dir = path.Dir(dir) {
			if slices.ContainsFunc(versionManagerFiles, func(name string) bool { return w.facts.exists(path.Join(dir, name)) }) {
				return true
			}
			if dir == "/" {
				break
			}
		}
		return false
	})
}

func readsOnly(name string, args []arg) bool {
	given := args[0].text
	switch {
	case !isSystemProgram(given):
		return false
	case freeReaders.has(given) || freeReaders.has(name) && isSystemPath(given):
		return !slices.ContainsFunc(args[1:], func(a arg) bool { return a.certainty == dynamic })
	}
	r, ok := readers()[name]
	if !ok {
		return false
	}
	if r.check != nil {
		return r.check(args[1:])
	}
	operands, ok := r.operands(args[1:])
	if name == "date" {
		return ok && !slices.ContainsFunc(operands, func(a arg) bool { return !strings.HasPrefix(a.text, "+") })
	}
	return ok && (r.maxOperands == 0 || len(operands) <= max(r.maxOperands, 0))
}

// isSystemProgram reports whether a name leads to the system's own
// program, as far as the name can tell: ./ls is not ls.
func isSystemProgram(name string) bool {
	return name == strings.ToLower(name) && (!strings.Contains(name, "/") || isSystemPath(name))
}

func allLiteral(args []arg) bool {
	return !slices.ContainsFunc(args, func(a arg) bool { return !a.isExact() })
}

// hasOnlyOperands reports whether there are words, all known, and none is an option.
func hasOnlyOperands(args []arg) bool {
	return len(args) > 0 && allLiteral(args) && !slices.ContainsFunc(args,
		func(a arg) bool { return strings.HasPrefix(a.text, "-") })
}

var (
	unaryTests  = wordList("-b -c -d -e -f -g -h -k -n -p -r -s -u -w -x -z -L -O -G -N -S !")
	binaryTests = wordList("= == != -nt -ot -ef")
)

// testReads reports whether a test with unknown words only reads: the words can only be operands. In
// all other tests they may be operators, or variables with an index.
func testReads(args []arg) bool {
	if allLiteral(args) {
		return true
	}
	if slices.ContainsFunc(args, func(a arg) bool { return !a.isExact() && !a.isSingle }) {
		return false
	}
	if len(args) > 2 && args[0].isOneOf("!") && !(len(args) == 3 && args[1].isExact() && binaryTests.has(args[1].text)) {
		args = args[1:]
	}
	switch len(args) {
	case 1:
		return true
	case 2:
		return args[0].isExact() && unaryTests.has(args[0].text)
	case 3:
		return args[1].isExact() && binaryTests.has(args[1].text)
	}
	return false
}

// zshTiedVars are variables that zsh ties to others.
var zshTiedVars = wordList("path cdpath fpath manpath mailpath module_path fignore argv status pipestatus prompt psvar watch")

// setsOrdinaryVars reports whether read sets only ordinary variables.
func setsOrdinaryVars(args []arg) bool {
	if len(args) > 0 && args[0].isOneOf("-r") {
		args = args[1:]
	}
	return len(args) > 0 && allLiteral(args) && !slices.ContainsFunc(args, func(a arg) bool {
		return strings.Trim(a.text, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || !isHarmlessVariable(a.text) ||
			zshTiedVars.has(a.text)
	})
}

// operands returns the words that are not options. It fails if a word is unknown or an option not harmless.
func (o options) operands(args []arg) ([]arg, bool) {
	_, rest, ok := o.parseInterspersed(args)
	return rest, ok && allLiteral(args)
}

// parseInterspersed reads options at any position, up to "--".
func (o options) parseInterspersed(args []arg) (fs []parsedOption, operands []arg, ok bool) {
	ok = true
	for len(args) > 0 {
		switch {
		case args[0].isOneOf("--"):
			return fs, append(operands, args[1:]...), ok
		case !args[0].isOption():
			operands, args = append(operands, args[0]), args[1:]
		default:
			got, n := o.parseNext(args)
			if n == 0 {
				ok, n = false, 1
			}
			fs, args = append(fs, got...), args[n:]
		}
	}
	return fs, operands, ok
}

var sedOptions = newOptions("nErszu", "el",
	"quiet silent regexp-extended separate null-data expression= line-length= posix sandbox debug")

func sedReads(args []arg) bool {
	if !allLiteral(args) {
		return false
	}
	fs, operands, ok := sedOptions.parseInterspersed(args)
	if !ok {
		return false
	}
	var scripts []string
	for _, f := range fs {
		if f.name == "e" || f.name == "expression" {
			scripts = append(scripts, f.value.text)
		}
	}
	if len(scripts) == 0 {
		if len(operands) == 0 {
			return false
		}
		scripts = append(scripts, operands[0].text)
	}
	return !slices.ContainsFunc(scripts, func(s string) bool { return !sedScriptReads(s) })
}

var (
	sedAddress = `(?:\d+|\$|\d+~\d+|/(?:[^/\\\n\[]|\\[^\n])+/I?|\+\d+)`
	sedWhere   = lazy.Regexp(`^[\s;]*(?:` + sedAddress + `(?:\s*,\s*` + sedAddress + `)?)?\s*!?\s*`)
	sedPrint   = lazy.Regexp(`^[pdq=PDNngGhHxl][ \t]*(?:[;\n]|$)`)
	sedBracket = lazy.Regexp(`^\[\^?\]?(?:[^\]\[\\\n]|\[:[a-z]+:\])*\]`)
	sedFlags   = lazy.Regexp(`^[gpiI0-9]*[ \t]*(?:[;\n]|$)`)
)

// sedScriptReads reports whether a script is of the simplest kind: printing, deleting, quitting and
// substitutions whose flags neither write nor run, perhaps several in a row.
func sedScriptReads(script string) bool {
	if strings.Trim(script, "; \t\n") == "" {
		return false
	}
	for rest := script; strings.Trim(rest, "; \t\n") != ""; {
		rest = rest[len(sedWhere().FindString(rest)):]
		n := len(sedPrint().FindString(rest))
		if strings.HasPrefix(rest, "s") {
			n = sedSubstitution(rest)
		}
		if n == 0 {
			return false
		}
		rest = rest[n:]
	}
	return true
}

// sedSubstitution returns the length of the substitution at the
// start of text; 0 if it may do more, or its end is uncertain.
func sedSubstitution(text string) int {
	if len(text) < 2 || strings.IndexByte("/|,#:@!%", text[1]) < 0 {
		return 0
	}
	// With only two more delimiters they are unambiguous, in brackets or not.
	delimiters := 0
	for rest := text[2:]; ; delimiters++ {
		n := sedSection(rest, text[1], false)
		if n < 0 {
			break
		}
		rest = rest[n+1:]
	}
	at := 2
	for range 2 { // the pattern and the replacement
		n := sedSection(text[at:], text[1], delimiters != 2)
		if n < 0 || strings.Contains(text[at:at+n], "\n") {
			return 0
		}
		at += n + 1
	}
	flags := sedFlags().FindString(text[at:])
	if flags == "" && at < len(text) {
		return 0
	}
	return at + len(flags)
}

// sedSection returns the index of the next delimiter without a backslash; -1 if there is none or, with
// brackets, if one is in brackets: some programs treat that as a delimiter.
func sedSection(text string, delimiter byte, brackets bool) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == delimiter:
			return i
		case text[i] == '[' && brackets:
			bracket := sedBracket().FindString(text[i:])
			if bracket == "" || strings.IndexByte(bracket, delimiter) >= 0 {
				return -1
			}
			i += len(bracket) - 1
		}
	}
	return -1
}

// listsProcesses reports whether ps does not show the environment of processes, which may contain keys.
func listsProcesses(args []arg) bool {
	for i, a := range args {
		value := i > 0 && args[i-1].isOption() && strings.ContainsAny(args[i-1].text[len(args[i-1].text)-1:], "oOpCuUgGtsq")
		letters := strings.Trim(a.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		if !a.isExact() || strings.Contains(a.text, "env") || !value && letters && strings.Contains(a.text, "e") ||
			a.isOption() && strings.Contains(a.text, "E") {
			return false
		}
	}
	return true
}

// goReads reports whether a subcommand of go only reads.
func goReads(args []arg) bool {
	if !allLiteral(args) || len(args) == 0 {
		return false
	}
	switch args[0].text {
	case "version":
		return len(args) == 1
	case "env":
		return !slices.ContainsFunc(args[1:], func(a arg) bool {
			return a.isOption() && a.text != "-json" ||
				strings.Contains(a.text, "=")
		})
	}
	return false
}
