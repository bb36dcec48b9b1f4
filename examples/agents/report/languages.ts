import { basename, extname } from 'node:path'

/** Extension (lower case, with its dot) to the language it is counted under. Only files named here are read. */
const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ...named('Assembly', '.asm', '.s'),
  ...named('C', '.c', '.h'),
  ...named('C#', '.cs'),
  ...named('C++', '.cc', '.cpp', '.cxx', '.hh', '.hpp', '.hxx'),
  ...named('CSS', '.css', '.less', '.sass', '.scss'),
  ...named('Clojure', '.clj', '.cljc', '.cljs', '.edn'),
  ...named('Dart', '.dart'),
  ...named('Elixir', '.ex', '.exs'),
  ...named('Erlang', '.erl', '.hrl'),
  ...named('Go', '.go'),
  ...named('GraphQL', '.gql', '.graphql'),
  ...named('Groovy', '.gradle', '.groovy'),
  ...named('HCL', '.hcl', '.tf'),
  ...named('HTML', '.htm', '.html'),
  ...named('Haskell', '.hs'),
  ...named('INI', '.cfg', '.ini'),
  ...named('JSON', '.json', '.json5', '.jsonc'),
  ...named('Java', '.java'),
  ...named('JavaScript', '.cjs', '.js', '.jsx', '.mjs'),
  ...named('Julia', '.jl'),
  ...named('Kotlin', '.kt', '.kts'),
  ...named('Lua', '.lua'),
  ...named('Markdown', '.markdown', '.md', '.mdx'),
  ...named('Nix', '.nix'),
  ...named('OCaml', '.ml', '.mli'),
  ...named('Objective-C', '.m', '.mm'),
  ...named('PHP', '.php'),
  ...named('Perl', '.pl', '.pm'),
  ...named('PowerShell', '.ps1', '.psm1'),
  ...named('Protocol Buffers', '.proto'),
  ...named('Python', '.py', '.pyi'),
  ...named('R', '.r'),
  ...named('Ruby', '.rb'),
  ...named('Rust', '.rs'),
  ...named('SQL', '.sql'),
  ...named('SVG', '.svg'),
  ...named('Scala', '.sbt', '.scala'),
  ...named('Shell', '.bash', '.fish', '.sh', '.zsh'),
  ...named('Svelte', '.svelte'),
  ...named('Swift', '.swift'),
  ...named('TOML', '.toml'),
  ...named('Text', '.rst', '.txt'),
  ...named('TypeScript', '.cts', '.mts', '.ts', '.tsx'),
  ...named('Vue', '.vue'),
  ...named('XML', '.xml', '.xsd', '.xsl'),
  ...named('YAML', '.yaml', '.yml'),
  ...named('Zig', '.zig'),
])

/** Whole file names (lower case) that say more than an extension would. */
const BY_NAME: ReadonlyMap<string, string> = new Map([
  ...named('CMake', 'cmakelists.txt'),
  ...named('Docker', 'containerfile', 'dockerfile'),
  ...named('Make', 'gnumakefile', 'makefile'),
  ...named('Ruby', 'gemfile', 'rakefile'),
])

/** The language of a file by its name alone; undefined when the table does not know it. */
export function languageOf(path: string): string | undefined {
  const name = basename(path).toLowerCase()
  return BY_NAME.get(name) ?? BY_EXTENSION.get(extname(name))
}

function named(language: string, ...keys: string[]): [string, string][] {
  return keys.map(key => [key, language])
}
