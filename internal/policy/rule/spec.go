package rule

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/policy/risk"
)

// Spec is a rule as one word: a tool, or a tool and its target,
// such as bash(go test *), edit(src/**) or fetch(domain:x.org).
type Spec struct {
	Tool string
	On   string // "" means any use
	From string // the managed settings that it is in; "" means a flag
}

func (s Spec) String() string {
	if s.On == "" {
		return s.Tool
	}
	return s.Tool + "(" + s.On + ")"
}

// JoinSpecs formats a list for [ParseSpecs].
func JoinSpecs(list []Spec) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, ",")
}

// ParseSpecs parses a comma-separated list of specs. A comma inside parentheses is part of the spec.
func ParseSpecs(list string) ([]Spec, error) {
	var specs []Spec
	depth, from := 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i < len(list) && list[i] == '(':
			depth++
		case i < len(list) && list[i] == ')':
			depth--
		case i == len(list) || list[i] == ',' && depth == 0:
			s, err := ParseSpec(list[from:i])
			if err != nil {
				return nil, err
			}
			if s.Tool != "" {
				specs = append(specs, s)
			}
			from = i + 1
		}
	}
	return specs, nil
}

// ParseSpec parses one spec; an empty text gives the zero Spec.
func ParseSpec(text string) (Spec, error) {
	text = strings.TrimSpace(text)
	tool, rest, has := strings.Cut(text, "(")
	on, closed := strings.CutSuffix(rest, ")")
	switch {
	case text == "":
		return Spec{}, nil
	case has && !closed, strings.ContainsAny(tool, ") \t"), has && tool == "":
		return Spec{}, message.Errorf("%q is not a rule; rules look like read, bash(go test *), edit(src/**)", text)
	}
	if prefix, ok := strings.CutSuffix(on, ":*"); ok && !strings.HasPrefix(on, "domain:") {
		on = prefix + " *"
	}
	if on == "*" {
		on = ""
	}
	return Spec{Tool: strings.TrimSpace(tool), On: on}, nil
}

// matchesClass reports whether the spec is for a tool, by name, by class, or by a pattern.
func (s Spec) matchesClass(tool, class string) bool {
	return strings.EqualFold(s.Tool, class) || s.Matches(tool)
}

// Matches reports whether the spec is for a tool, by name, by a pattern, or by the name of its MCP server.
func (s Spec) Matches(tool string) bool { return nameMatches(s.Tool, tool) }

// nameMatches reports whether a name in a rule means a tool, in any case:
// its own name, a pattern, or mcp__server for all tools of a server.
func nameMatches(written, tool string) bool {
	written, tool = strings.ToLower(written), strings.ToLower(tool)
	if written == tool || isServer(written) && strings.HasPrefix(tool, written+"__") {
		return true
	}
	ok, err := path.Match(written, tool)
	return err == nil && ok
}

// isServer reports whether a name in a rule is an MCP server's.
func isServer(written string) bool {
	name, ok := strings.CutPrefix(written, "mcp__")
	return ok && name != "" && !strings.Contains(name, "__")
}

// matchesHost reports whether pattern, domain:x.org or a host, covers the host of address or a parent domain.
func matchesHost(pattern, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	domain := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(pattern, "domain:"), "*."))
	if name, port, err := net.SplitHostPort(domain); err == nil {
		usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
		return host == name && cmp.Or(u.Port(), usual) == port
	}
	return host == domain || strings.HasSuffix(host, "."+domain)
}

// specsCover reports whether allowing specs cover every command of a line. They do not cover substitutions,
// redirections, unknown commands, or a variable that may change what a program does or which one it is.
func specsCover(specs []Spec, tool string, r risk.Report) bool {
	if r.Substituted || r.Unknown || r.Redirected || len(r.SetVars) > 0 || len(r.Simple) == 0 {
		return slices.ContainsFunc(specs, func(s Spec) bool { return s.On == "" && s.matchesClass(tool, ClassCommand) })
	}
	for _, c := range r.Simple {
		if !slices.ContainsFunc(specs, func(s Spec) bool {
			return s.matchesClass(tool, ClassCommand) && (s.On == "" || risk.MatchPattern(s.On, c))
		}) {
			return false
		}
	}
	return true
}

// denyingSpec returns the spec that denies a command of a line. A
// line with an unknown command may run the denied one.
func denyingSpec(specs []Spec, tool string, r risk.Report) (Spec, bool) {
	for _, s := range specs {
		if !s.matchesClass(tool, ClassCommand) {
			continue
		}
		pattern := s.On
		if like, _, isShape := strings.Cut(s.On, risk.Ellipsis); isShape {
			pattern = like + "*"
		}
		if s.On == "" || r.Unknown || s.On == strings.TrimSpace(r.Command) ||
			slices.ContainsFunc(r.Simple, func(c risk.Command) bool { return c.Matches(pattern) }) {
			return s, true
		}
	}
	return Spec{}, false
}

// HostOf returns the host of an address in its form for permissions: lower case, without a final dot,
// with the port unless it is the web's. It returns "" if the address has a name or password, or a host
// that is not in plain letters: the owner of such a host is not obvious.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	} else if host == "" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "" {
		return ""
	}
	switch port := u.Port(); {
	case port == "" || port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https":
		return host
	default:
		return net.JoinHostPort(host, port)
	}
}

// HostsIn returns the hosts in a user's text: in an address, or as a
// bare name under a domain that is not also a file extension.
func HostsIn(words string) []string {
	var hosts []string
	add := func(host string) {
		if host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	between := func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("<>\"`|{},;、，。；：！？（）「」《》“”‘’", r)
	} // in any script
	for word := range strings.FieldsFuncSeq(words, between) {
		lower := strings.ToLower(word)
		at := strings.Index(lower, "http://")
		if i := strings.Index(lower, "https://"); at < 0 || i >= 0 && i < at {
			at = i
		}
		word = strings.TrimRight(strings.TrimLeft(word, "(["), ".:!?)]'")
		switch {
		case at >= 0:
			add(HostOf(strings.TrimRight(lower[at:], ".:!?)]'")))
		case strings.Contains(word, "@") || strings.HasPrefix(word, "/"):
		default:
			host := HostOf("https://" + word)
			name, _, _ := strings.Cut(host, ":")
			if i := strings.LastIndexByte(name, '.'); i > 0 && slices.Contains(domains, name[i+1:]) {
				add(host)
			}
		}
	}
	return hosts
}

// domains are those under which a bare name means a host.
var domains = []string{"com", "org", "net", "edu", "gov", "io", "dev", "cn", "de", "uk", "jp", "eu"}
