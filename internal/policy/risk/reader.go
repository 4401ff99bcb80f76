package risk

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A reader is a command that only reads, given words it is known to take.
type reader struct {
	options
	most  int              // operands it may have; 0 is any number
	check func([]arg) bool // a judgement of its own, instead of the options
}

// free are the readers that no option, and so no word at all, makes write or
// run anything.
var free = set(`ls dir vdir cat head tail wc cut tr pwd whoami id groups logname uname arch nproc uptime which whereis type echo
	true false : basename dirname realpath readlink stat du df free nl tac rev fold expand unexpand paste join comm cmp
	cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum md5 shasum od hexdump strings column seq sleep
	grep egrep fgrep zgrep printenv getconf locale pgrep lsblk lscpu lsmod jq numfmt tsort factor expr sw_vers lsb_release cal
	users who w last pathchk`)

var readers = map[string]reader{
	"sort": {options: known("bdfghiMnRrVcCmsuz", "kSt", "reverse unique numeric-sort human-numeric-sort version-sort general-numeric-sort month-sort "+
		"ignore-case ignore-leading-blanks dictionary-order stable check[= zero-terminated key= field-separator= parallel= buffer-size= random-sort merge")},
	"uniq": {options: known("cdDuizu", "fsw", "count repeated all-repeated[= unique ignore-case zero-terminated skip-fields= skip-chars= check-chars="), most: 1},
	"diff": {options: known("abBcdeEiNnpqrstTuwyZ#", "CUFIWxX", "unified[= context[= brief recursive side-by-side ignore-all-space ignore-space-change "+
		"ignore-blank-lines ignore-case new-file text minimal report-identical-files width= exclude= color[= suppress-common-lines label= "+
		"strip-trailing-cr no-dereference show-c-function normal")},
	"file":   {options: known("bhikLnNrs0E", "eFfmP", "brief mime mime-type mime-encoding dereference no-dereference extension no-pad raw separator= apple special-files")},
	"tree":   {options: known("adfilLxpshugDFqNQrtcUvAJXCnS", "LPI", "noreport dirsfirst filesfirst prune gitignore du si matchdirs ignore-case inodes device sort= charset= filelimit= version help")},
	"date":   {options: known("uR", "drI", "utc universal rfc-email date= reference= iso-8601[= rfc-3339= debug"), check: nil},
	"printf": {check: func(as []arg) bool { return literals(as) && (len(as) == 0 || !strings.HasPrefix(as[0].text, "-")) }},
	"test":   {check: literals}, "[": {check: literals},
	"hostname": {options: known("adfiIsAy", "", "fqdn short ip-address all-ip-addresses domain all-fqdns"), most: -1},
	"xxd":      {options: known("abceEipuds", "cglos", ""), most: 1},
	"rg":       {options: ripgrep},
	"sed":      {check: sedReads},
	"go":       {check: goReads},
	"base64":   {options: known("diD", "wb", "decode ignore-garbage wrap= break=")},
	"base32":   {options: known("di", "w", "decode ignore-garbage wrap=")},
	"tput":     {options: known("", "", ""), most: 1},
	"getent":   {check: localNames},
	"ps":       {check: listsProcesses},
}

var ripgrep = known("nilLcvwxsSaFPoUuHINpq0b.Vh", "eftTgmMABCrjdEkE", "line-number no-line-number ignore-case smart-case case-sensitive files-with-matches files-without-match "+
	"count count-matches invert-match word-regexp line-regexp text fixed-strings pcre2 only-matching multiline multiline-dotall unrestricted hidden no-ignore "+
	"no-ignore-vcs with-filename no-filename heading no-heading pretty quiet null files type-list no-messages json vimgrep column stats trim follow "+
	"regexp= file= type= type-not= glob= iglob= max-count= max-columns= after-context= before-context= context= replace= threads= max-depth= "+
	"max-filesize= sort= sortr= color= colors= encoding= engine= passthru byte-offset no-config version help glob-case-insensitive")

// versions are the programs that only say which version they are if that is
// the one thing they are asked.
var versions = set("git node npm python python3 pip pip3 ruby perl php java gcc g++ cc clang make cmake docker curl wget rg jq bash tar")

// shortVersions are the programs for which one letter asks the same.
var shortVersions = map[string]string{
	"node": "-v", "npm": "-v", "ruby": "-v", "perl": "-v", "make": "-v",
	"python": "-V", "python3": "-V", "pip": "-V", "pip3": "-V",
}

func asksVersion(args []arg) bool {
	if len(args) != 2 || !args[1].exact() {
		return false
	}
	name, asked := args[0].text, args[1].text
	return asked == "--version" && versions[name] || asked == shortVersions[name] && asked != ""
}

// switches are the files by which a project chooses which program a name runs,
// where a version manager stands for it: perhaps one of its own.
var switches = []string{
	".tool-versions", "mise.toml", ".mise.toml", ".mise", ".rtx.toml", ".python-version", ".node-version", ".ruby-version", ".java-version", ".sdkmanrc",
}

// switched reports whether there is such a file where the shell may be, or above
// that in the workspace.
func (w *walker) switched() bool {
	return w.lost || slices.ContainsFunc(w.dirs, func(dir string) bool {
		for ; w.facts.isInside(dir); dir = path.Dir(dir) {
			if slices.ContainsFunc(switches, func(name string) bool { return w.facts.exists(path.Join(dir, name)) }) {
				return true
			}
			if dir == "/" {
				break
			}
		}
		return false
	})
}

// readsOnly reports whether a command only reads, as written.
func readsOnly(name string, args []arg) bool {
	given := args[0].text
	switch {
	case !properName(given):
		return false
	case free[given] || free[name] && systemPath(given):
		return !slices.ContainsFunc(args[1:], func(a arg) bool { return a.known == dynamic })
	}
	r, ok := readers[name]
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
	return ok && (r.most == 0 || len(operands) <= max(r.most, 0))
}

// properName reports whether a name leads to the system's own program, as far
// as a name can tell: ./ls is not ls.
func properName(name string) bool {
	return name == strings.ToLower(name) && (!strings.Contains(name, "/") || systemPath(name))
}

// literals reports whether every word is known.
func literals(args []arg) bool {
	return !slices.ContainsFunc(args, func(a arg) bool { return !a.exact() })
}

// operands are the words that are no options. It fails if a word is not known
// or an option not harmless.
func (o options) operands(args []arg) ([]arg, bool) {
	_, rest, ok := o.interspersed(args)
	return rest, ok && literals(args)
}

// interspersed reads options wherever they stand, up to "--".
func (o options) interspersed(args []arg) (fs []found, operands []arg, ok bool) {
	ok = true
	for len(args) > 0 {
		switch {
		case args[0].is("--"):
			return fs, append(operands, args[1:]...), ok
		case !args[0].option():
			operands, args = append(operands, args[0]), args[1:]
		default:
			got, n := o.next(args)
			if n == 0 {
				ok, n = false, 1
			}
			fs, args = append(fs, got...), args[n:]
		}
	}
	return fs, operands, ok
}

var sedOptions = known("nErszu", "el", "quiet silent regexp-extended separate null-data expression= line-length= posix sandbox debug")

// sedReads reports whether sed runs scripts that only print.
func sedReads(args []arg) bool {
	if !literals(args) {
		return false
	}
	fs, operands, ok := sedOptions.interspersed(args)
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
	sedPrint   = lazily(`^\s*(?:` + sedAddress + `(?:\s*,\s*` + sedAddress + `)?)?\s*!?\s*[pdq=PDNngGhHxl]\s*$`)
	sedPrefix  = lazily(`^\s*(?:` + sedAddress + `(?:\s*,\s*` + sedAddress + `)?)?\s*s`)
	sedFlags   = lazily(`^[gpiI0-9]*\s*$`)
)

// lazily compiles an expression when it is first used.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// sedScriptReads knows the plainest scripts: printing, deleting and quitting,
// several in a row; or one substitution whose flags neither write nor run.
func sedScriptReads(script string) bool {
	prints := true
	for part := range strings.FieldsFuncSeq(script, func(r rune) bool { return r == ';' || r == '\n' }) {
		prints = prints && sedPrint().MatchString(part)
	}
	if prints && script != "" {
		return true
	}
	prefix := sedPrefix().FindString(script)
	rest := script[len(prefix):]
	if prefix == "" || rest == "" || strings.Contains(rest, "\n") || strings.IndexByte("/|,#:@!%", rest[0]) < 0 {
		return false
	}
	delimiters, last := 0, 0
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			delimiters, last = delimiters+1, i
		}
	}
	return delimiters == 2 && sedFlags().MatchString(rest[last+1:])
}

// localNames knows what getent looks up on this machine. Others ask the network,
// and so tell it.
func localNames(args []arg) bool {
	return literals(args) && len(args) > 0 && args[0].is("passwd", "group", "shells", "services", "protocols")
}

// listsProcesses knows the uses of ps that do not show what processes were
// given in their environment: keys, perhaps.
func listsProcesses(args []arg) bool {
	for i, a := range args {
		value := i > 0 && args[i-1].option() && strings.ContainsAny(args[i-1].text[len(args[i-1].text)-1:], "oOpCuUgGtsq")
		letters := strings.Trim(a.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		if !a.exact() || strings.Contains(a.text, "env") || !value && letters && strings.Contains(a.text, "e") || a.option() && strings.Contains(a.text, "E") {
			return false
		}
	}
	return true
}

// goReads knows the subcommands of go that only tell.
func goReads(args []arg) bool {
	if !literals(args) || len(args) == 0 {
		return false
	}
	switch args[0].text {
	case "version":
		return len(args) == 1
	case "env":
		return !slices.ContainsFunc(args[1:], func(a arg) bool { return a.option() && a.text != "-json" || strings.Contains(a.text, "=") })
	}
	return false
}
