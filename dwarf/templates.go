package dwarf

import "strings"

// Names of the C++ library's templates carry arguments that nobody gave: allocators,
// comparisons, hashes. People leave these out, and so does gdb where it is asked for a
// type.

// ownArguments are the templates that stand as arguments of others by default.
var ownArguments = []string{"std::allocator<", "std::char_traits<", "std::less<", "std::hash<", "std::equal_to<", "std::default_delete<"}

// aliases are what the library calls some of its templates.
var aliases = map[string]string{
	"std::basic_string<char>": "std::string", "std::basic_string<wchar_t>": "std::wstring", "std::basic_string<char8_t>": "std::u8string",
	"std::basic_string<char16_t>": "std::u16string", "std::basic_string<char32_t>": "std::u32string",
	"std::basic_string_view<char>": "std::string_view", "std::basic_string_view<wchar_t>": "std::wstring_view",
}

// plainTemplates returns a type's name without such arguments, and with aliases.
func plainTemplates(name string) string {
	if !strings.Contains(name, "std::") || len(name) > maxTypeStr {
		return name
	}
	out, _ := plainTemplate(name, 0)
	return out
}

// plainTemplate rewrites name up to the comma or bracket that ends it, and returns the
// rest. A closing bracket after another has a space before it in DWARF's names.
func plainTemplate(name string, depth int) (out, rest string) {
	var b strings.Builder
	start := 0 // of the word in b that a bracket may follow
	for len(name) > 0 {
		i := strings.IndexAny(name, "<>,() ")
		if i < 0 || depth > maxNesting {
			b.WriteString(name)
			return b.String(), ""
		}
		b.WriteString(name[:i])
		switch c := name[i]; {
		case c == '<':
			var list []string
			for name = name[i:]; name != "" && name[0] != '>'; {
				var one string
				one, name = plainTemplate(name[1:], depth+1)
				if one = strings.TrimSpace(one); !isOwnArgument(one) || len(list) == 0 {
					list = append(list, one)
				}
			}
			name = strings.TrimPrefix(name, ">")
			whole := strings.Replace(b.String()[start:], "std::__cxx11::", "std::", 1) + "<" + strings.Join(list, ", ") + ">"
			if alias, ok := aliases[whole]; ok {
				whole = alias
			}
			prefix := b.String()[:start]
			b.Reset()
			b.WriteString(prefix + whole)
			continue
		case depth > 0 && (c == '>' || c == ','):
			return b.String(), name[i:]
		default:
			b.WriteByte(c)
		}
		name = name[i+1:]
		start = b.Len()
	}
	return b.String(), ""
}

func isOwnArgument(name string) bool {
	for _, o := range ownArguments {
		if strings.HasPrefix(name, o) {
			return true
		}
	}
	return false
}
