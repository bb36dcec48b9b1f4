import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { base, inTree } from '../plugins/index.js'
import { pluginFolders } from '../scripts/plugin-folders.mjs'
import { circlesOf, graphOf } from './harness/graph.js'
import { readSource, type Source, sourcesBelow } from './harness/source.js'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')
/** The console, which runs in a browser. */
const CONSOLE = 'plugins/desk/console/app'
const tree = [
  'kernel',
  'schemas',
  'plugins',
  'cli',
  'client',
  'testing',
  'examples',
  'scripts',
  'test/bench',
  'packages',
]
  .filter(folder => existsSync(path.join(root, folder)))
  .flatMap(folder => sourcesBelow(root, folder))
  // Texts of files for authors, which are no code of the package.
  .filter(({ file }) => !/^plugins\/delivery\/extensions\/authoring\/(bridge-)?templates?\.ts$/.test(file))
  // A program of the browser, with rules of its own below.
  .filter(({ file }) => !file.startsWith(`${CONSOLE}/`))

const plugins = pluginFolders(root)

type Package = Partial<
  Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Readonly<Record<string, string>>>
>
const dependenciesOf = (file: string) => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
    readFileSync(path.join(root, file), 'utf8'),
  ) as Package
  return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
}

/** Libraries that only the packages below `packages/` have. */
const librariesOfPackages = new Set(
  readdirSync(path.join(root, 'packages')).flatMap(name => dependenciesOf(`packages/${name}/package.json`)),
)
for (const shared of dependenciesOf('package.json')) librariesOfPackages.delete(shared)

/** Name of the package of a specifier: `@slack/web-api/dist/x.js` is of `@slack/web-api`. */
const packageOf = (specifier: string) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** Markdown files below a folder, paths relative to the root. */
const documentsBelow = (folder: string) =>
  readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith('.md'))
    .map(entry => path.relative(root, path.join(entry.parentPath, entry.name)))

/** Who may open files by Node's own calls, and why that neither waits nor reads without a bound. */
const OPENS: Readonly<Record<string, string>> = {
  'kernel/kit/read-file.ts': 'it is the one that opens and reads for all others',
  'kernel/kit/git/with-repository.ts':
    'makes new files in a new folder of its own, and with O_EXCL beside what it replaces',
  'kernel/store/engine.ts': 'reads the SQLite of the package, whose bytes are pinned',
  'kernel/lock/record.ts': 'makes a new file with O_EXCL',
  'kernel/lock/file-lock.ts': 'opens what it locks, with O_NONBLOCK',
  'kernel/lock/holder.ts': 'reads /proc',
  'plugins/desk/backup/home/upgrade.ts': 'makes a new file with O_EXCL',
  'plugins/desk/backup/make/write-backup.ts': 'makes a new file with O_EXCL',
  'plugins/desk/backup/restore/restore.ts': 'makes new files with O_EXCL, opens what it has made',
  'plugins/desk/backup/restore/verify.ts': 'writes into a new folder of its own',
  'plugins/desk/daemon/database.ts': 'copies the database of the daemon itself',
  'plugins/desk/daemon/verify-copy.ts': 'reads, in a thread, the copy that it made',
  'plugins/desk/daemon/verify.ts': 'copies what was opened as a regular file before',
  'plugins/delivery/subprocess-host/memory.ts': 'reads /proc',
  'plugins/platform/processes/inspect.ts': 'reads /proc',
  'plugins/platform/processes/callers.ts': 'reads /proc',
  'plugins/platform/processes/cgroup.ts': 'reads /proc and writes the files of a cgroup',
  'plugins/delivery/extensions/load/code.ts': 'makes new files with O_EXCL',
  'plugins/delivery/extensions/load/package.ts': 'makes a new file with O_EXCL',
  'plugins/delivery/extensions/folders/disable-notes.ts': 'makes a new file with O_EXCL, opens folders',
  'plugins/delivery/installer/files.ts': 'makes new files with O_EXCL, opens folders with O_DIRECTORY',
  'plugins/delivery/extensions/authoring/validate.ts': 'writes into a new folder of its own',
  'plugins/delivery/extensions/authoring/test.ts': 'writes into a new folder of its own',
  'plugins/delivery/extensions/authoring/init.ts': 'writes into a new folder of its own',
  'plugins/delivery/extensions/authoring/types.ts': 'writes what it has read as a regular file before',
  'plugins/delivery/extensions/authoring/bundle.ts': 'writes what it has read as a regular file before',
  'plugins/platform/disk/disk-guard.ts': 'makes a new file with O_EXCL',
  'plugins/platform/streams/connections.ts': 'reads /proc',
  'plugins/platform/tcp/peers.ts': 'reads /proc',
  'plugins/access/vault/key-file.ts': 'makes a new file with O_EXCL, opens folders',
  'plugins/desk/workspaces/files.ts': 'makes new files with O_EXCL, opens folders with O_DIRECTORY',
  'plugins/work/acp/requests/open-inside.ts':
    'opens with O_NONBLOCK, folder by folder; what it opened is judged by who reads it',
  'plugins/work/worktrees/carry.ts': 'makes new files with O_EXCL, in folders that are no links',
  'plugins/work/acp/process/pulse.ts': 'reads /proc',
  'plugins/work/sessions/agent/crash-bundle.ts': 'makes a new file with O_EXCL',
  'cli/watchdog-thread.ts': 'reads /proc',
  'cli/named-file.ts': 'opens a pipe that a person named, with O_NONBLOCK',
  'cli/daemon/start-daemon.ts': 'makes a new file in a new folder',
  'cli/tasks/external-editor.ts': 'makes a new file in a new folder',
  'cli/build-data.ts': 'writes the build',
  'cli/setup/settings-file.ts': 'makes a new file with O_EXCL',
  'cli/daemon/code-cache.ts': 'reads the build, makes a new file with O_EXCL',
  'packages/agent/src/session/transcript-store.ts': 'makes new files with O_EXCL',
  'packages/agent/src/workspace/plain-file.ts': 'opens with O_NONBLOCK and looks at what it opened',
  'packages/bridge-email/src/position.ts': 'reads and writes one file of its own in the folder of the extension',
  'examples/agents/report/sessions.ts': 'reads what it has looked at, makes new files with O_EXCL',
  'examples/agents/report/workspace.ts': 'opens with O_NONBLOCK and looks at what it opened',
}

/** Plugins that read a stream themselves, and what bounds them. */
const READS: Readonly<Record<string, string>> = {
  'plugins/delivery/subprocess-host/instance.ts':
    'hands the log of an extension on by bytes a turn; its ring mutes and ends it',
  'plugins/desk/backup/archive/read.ts': 'keeps none but small entries, whose size is bounded',
  'plugins/desk/backup/chunks/split.ts': 'keeps one chunk at a time',
  'plugins/desk/backup/make/write-backup.ts': 'hashes and writes piece by piece',
  'plugins/desk/backup/restore/export.ts': 'writes piece by piece',
  'plugins/desk/backup/restore/restore.ts': 'writes piece by piece',
}

/** Calls of node:fs that open a file by its path, or names under which they are imported. */
function opensOf(source: Source): string[] {
  const raw =
    /^(?:open|openAsBlob|readFile|writeFile|appendFile|copyFile|cp|truncate|createReadStream|createWriteStream)(?:Sync)?$/
  const found: string[] = []
  for (const [, clause = ''] of source.text.matchAll(
    /\bimport\s+([^'"]*?)\s+from\s+['"](?:node:)?fs(?:\/promises)?['"]/g,
  )) {
    const named = /\{([^}]*)\}/.exec(clause)?.[1] ?? ''
    found.push(
      ...named
        .split(',')
        .map(name => name.trim().split(/\s+/)[0] ?? '')
        .filter(name => raw.test(name)),
    )
    const whole = /^(?:\*\s+as\s+)?(\w+)/.exec(clause)?.[1]
    if (!whole || whole === 'type') continue
    const member = new RegExp(`\\b${whole}\\.(?:promises\\.)?(\\w+)`, 'g')
    found.push(...[...source.code.matchAll(member)].map(([, name = '']) => name).filter(name => raw.test(name)))
  }
  const hidden = /(?:\bimport|\brequire)\s*\(\s*['"](?:node:)?fs(?:\/promises)?['"]\s*\)/g
  return [...found, ...[...source.text.matchAll(hidden)].map(([call]) => call)]
}

interface Rule {
  readonly says: string
  readonly broken: (source: Source) => string[]
  /** Sources that must break the rule: a rule that cannot fail proves nothing. */
  readonly mutants: readonly (readonly [file: string, text: string])[]
}

/** What programs and plugins import of the kernel. */
const ENTRIES = ['kernel/index.ts', 'kernel/plugin.ts', 'kernel/platform.ts', 'kernel/kit/index.ts']

const NOUNS = new Set(['agent', 'session', 'task', 'job', 'bridge', 'skill', 'bundle', 'vault'])

/** Where an import leads, as a path from the root; packages stay as they are. */
const target = (source: Source, specifier: string) =>
  specifier.startsWith('.') ? path.join(path.dirname(source.file), specifier).replace(/\.js$/, '.ts') : specifier

const imports = (source: Source) => source.imports.map(specifier => target(source, specifier))
const inside = (file: string, folder: string) => file.startsWith(`${folder}/`)
const only = (from: Source, where: string, allowed: (to: string) => boolean) =>
  inside(from.file, where) ? imports(from).filter(to => !allowed(to)) : []
const isPackage = (to: string) =>
  !/^(kernel|schemas|plugins|cli|client|testing|examples|test|scripts|packages)\//.test(to)

const libraryOnlyIn = (library: RegExp, allowed: RegExp) => (source: Source) =>
  inside(source.file, 'kernel') || inside(source.file, 'plugins') || inside(source.file, 'cli')
    ? imports(source).filter(to => library.test(to) && !allowed.test(source.file))
    : []

const used = (source: Source, pattern: RegExp) => [...source.code.matchAll(pattern)].map(match => match[0])
const isCode = (source: Source) =>
  ['kernel', 'plugins', 'schemas', 'cli', 'client'].some(folder => inside(source.file, folder))

/** What plugins wrote by hand before the kit had it. */
const BY_HAND: readonly RegExp[] = [
  /Buffer\.from\([^\n]*'base64url'/g,
  /\.toString\('base64url'\)/g,
  /\/\^(?:\((?:\?:)?)?(?:[a-z]+\|)*(?:env|vault):?(?:\||\)|:)/g,
  /startsWith\('(?:env|vault):'\)/g,
  /\/\^---/g,
  /Promise<unknown> = Promise\.resolve\(\)/g,
  /(this\.#\w+) = \w+\.catch\(\(\) => \{\}\)/g,
  /DELETE FROM[^`]*ORDER BY seq DESC LIMIT/g,
  /class \w*Heap\b/g,
  /v\.trim\(\), (?:v\.minLength\(\d+\), )?v\.maxLength\(/g,
  /JSON\.stringify\([\w.]+\.slice\(0, \d+\)\)/g,
]

/** Citations by number, or of documents that readers do not have. The words may be on two lines of a comment. */
const citesOf = (prose: string) =>
  [
    ...prose
      .replace(/\s*\n\s*(?:\*|\/\/)?\s*/g, ' ')
      .matchAll(
        /\bBehaviours? \d[\d.]*|\bSpecifications? [AB]\b|\b[Dd]ecisions? \d+|\(Storage\b|\bStorage(?:,| rule) /g,
      ),
  ].map(([cite]) => cite)

const rules: Rule[] = [
  {
    says: 'schemas import valibot and each other',
    broken: s => only(s, 'schemas', to => to === 'valibot' || inside(to, 'schemas')),
    mutants: [
      ['schemas/a.ts', "import fs from 'node:fs'"],
      ['schemas/a.ts', "import { x } from '../kernel/clock.js'"],
    ],
  },
  {
    says: 'the kernel imports packages, itself and schemas/kernel',
    broken: s => only(s, 'kernel', to => isPackage(to) || inside(to, 'kernel') || inside(to, 'schemas/kernel')),
    mutants: [
      ['kernel/a.ts', "import { x } from '../plugins/desk/daemon/api.js'"],
      ['kernel/a.ts', "import { x } from '../schemas/daemon.js'"],
    ],
  },
  {
    says: 'kernel/contract imports itself, valibot and the types of streams',
    broken: s => only(s, 'kernel/contract', to => /^(valibot|node:stream)$/.test(to) || inside(to, 'kernel/contract')),
    mutants: [
      ['kernel/contract/a.ts', "import type { Host } from '../host/host.js'"],
      ['kernel/contract/a.ts', "import fs from 'node:fs'"],
    ],
  },
  {
    says: 'kernel/store imports packages, itself, the contract, the kit and kernel/clock',
    broken: s =>
      only(s, 'kernel/store', to => isPackage(to) || /^kernel\/(clock\.ts$|(store|contract|kit)\/)/.test(to)),
    mutants: [['kernel/store/a.ts', "import { x } from '../lock/index.js'"]],
  },
  {
    says: 'kernel/kit imports packages, itself, the contract and schemas/kernel',
    broken: s =>
      only(
        s,
        'kernel/kit',
        to => isPackage(to) || inside(to, 'schemas/kernel') || /^kernel\/(contract|kit)\//.test(to),
      ),
    mutants: [
      ['kernel/kit/a.ts', "import { x } from '../records/store.js'"],
      ['kernel/kit/a.ts', "import type { Clock } from '../clock.js'"],
    ],
  },
  {
    says: 'a plugin imports svc/plugin, svc/platform, the kit, schemas, itself and the api of other plugins',
    broken: s =>
      // The others are what `svc` and `svc/plugin` are to an extension of apiVersion 1, and no part of a plugin.
      s.file === 'plugins/index.ts' || /^plugins\/delivery\/extensions\/version-one\/(svc|plugin)\.ts$/.test(s.file)
        ? []
        : only(s, 'plugins', to => {
            const own = s.file.split('/').slice(0, 3).join('/')
            return (
              isPackage(to) ||
              to === 'kernel/plugin.ts' ||
              to === 'kernel/platform.ts' ||
              inside(to, 'kernel/kit') ||
              inside(to, 'schemas') ||
              inside(to, own) ||
              /^plugins\/[^/]+\/[^/]+\/api\.ts$/.test(to)
            )
          }),
    mutants: [
      ['plugins/g/a/service.ts', "import { x } from '../b/service.js'"],
      ['plugins/a/service.ts', "import { x } from '../../kernel/records/store.js'"],
      ['plugins/a/service.ts', "import { x } from '../../kernel/kitchen/sink.js'"],
      ['plugins/a/service.ts', "import { createKernel } from '../../kernel/index.js'"],
      ['plugins/a/index.ts', "export { x } from '../../cli/client.js'"],
    ],
  },
  {
    says: 'entries of the kernel name what they export',
    broken: s => (ENTRIES.includes(s.file) ? used(s, /\bexport (?:type )?\*/g) : []),
    mutants: [
      ['kernel/plugin.ts', "export * from './contract/route.js'"],
      ['kernel/kit/index.ts', "export type * from './rate.js'"],
    ],
  },
  {
    says: 'testing imports the public kernel, schemas, the client, api and index of plugins, and the authoring tools',
    broken: s =>
      only(
        s,
        'testing',
        to =>
          isPackage(to) ||
          ENTRIES.includes(to) ||
          to === 'plugins/index.ts' ||
          inside(to, 'plugins/delivery/extensions/authoring') ||
          inside(to, 'client') ||
          inside(to, 'schemas') ||
          inside(to, 'testing') ||
          /^plugins\/[^/]+\/[^/]+\/api\.ts$/.test(to),
      ),
    mutants: [
      ['testing/a.ts', "import { x } from '../kernel/host/host.js'"],
      ['testing/a.ts', "import { x } from '../plugins/a/service.js'"],
    ],
  },
  {
    says: 'the next command of an error is built by command(), which quotes arguments and checks the name',
    broken: s =>
      inside(s.file, 'plugins') ? (s.text.match(/\b(?:next|suggested_command): ['`]svc [a-z]/g) ?? []) : [],
    mutants: [
      ['plugins/a/b.ts', "throw Errors.lost('gone', { next: `svc task show trun_1` })"],
      ['plugins/a/b.ts', "const item = { suggested_command: 'svc doctor' }"],
    ],
  },
  {
    says: 'the client imports Node, ws, the parser of event streams and itself',
    broken: s =>
      only(
        s,
        'client',
        to => to.startsWith('node:') || ['ws', 'eventsource-parser'].includes(to) || inside(to, 'client'),
      ),
    mutants: [
      ['client/a.ts', "import * as v from 'valibot'"],
      ['client/a.ts', "import { x } from '../schemas/daemon.js'"],
    ],
  },
  {
    says: 'agent and adapters import only packages, themselves and the adapter kit, and no other code imports them',
    broken: s =>
      inside(s.file, 'packages')
        ? imports(s).filter(
            to =>
              !isPackage(to) &&
              !inside(to, s.file.split('/').slice(0, 2).join('/')) &&
              !(s.file.startsWith('packages/bridge-') && to === 'packages/bridge-kit/src/index.ts'),
          )
        : imports(s).filter(
            to =>
              /^(packages\/|@svc\/)/.test(to) ||
              (librariesOfPackages.has(packageOf(to)) && !inside(s.file, 'test/bench')) ||
              (/^@modelcontextprotocol\/(?!server-)/.test(to) && !/^(plugins\/work\/mcp|test\/bench)\//.test(s.file)),
          ),
    mutants: [
      ['packages/agent/src/a.ts', "import { x } from '../../../kernel/kit/text.js'"],
      ['packages/agent/src/a.ts', "import { split } from '../../bridge-kit/src/index.js'"],
      ['packages/bridge-irc/src/a.ts', "import { split } from '../../bridge-kit/src/text.js'"],
      ['packages/bridge-irc/src/a.ts', "import { x } from '../../bridge-xmpp/src/index.js'"],
      ['plugins/a/service.ts', "import { streamText } from 'ai'"],
      ['plugins/a/service.ts', "import { WebClient } from '@slack/web-api'"],
      ['cli/a.ts', "import { settingsOf } from '../packages/agent/src/settings.js'"],
      ['plugins/a/b.ts', "import { Client } from '@modelcontextprotocol/client'"],
    ],
  },
  {
    says: 'only kernel/http imports fastify, its router and its injected requests; only the plugin streams imports ws',
    // Fastify's parser of forms knows nothing of a server.
    broken: s => [
      ...libraryOnlyIn(/^(@fastify\/(?!busboy$)|fastify$|find-my-way$|light-my-request$)/, /^kernel\/http\//)(s),
      ...libraryOnlyIn(/^ws$/, /^plugins\/platform\/streams\//)(s),
    ],
    mutants: [
      ['kernel/host/a.ts', "import fastify from 'fastify'"],
      ['plugins/a/service.ts', "await import('ws')"],
    ],
  },
  {
    says: 'only kernel/http/pipelines.ts imports fastify-plugin, and only the log of the daemon pino',
    broken: s => [
      ...libraryOnlyIn(/^fastify-plugin$/, /^kernel\/http\/pipelines\.ts$/)(s),
      ...libraryOnlyIn(/^pino(\/|$)/, /^cli\/daemon\/daemon-log\.ts$/)(s),
    ],
    mutants: [
      ['kernel/http/routing.ts', "import fp from 'fastify-plugin'"],
      ['kernel/log.ts', "import { pino } from 'pino'"],
      ['plugins/a/service.ts', "await import('pino')"],
    ],
  },
  {
    says: 'only two files of the plugin telemetry import the trace library, which loads on demand',
    broken: libraryOnlyIn(/^@opentelemetry\//, /^plugins\/reach\/telemetry\/traces\/(tracer|exporter)\.ts$/),
    mutants: [
      ['plugins/reach/telemetry/service.ts', "import { trace } from '@opentelemetry/api'"],
      ['plugins/work/sessions/a.ts', "import { SpanKind } from '@opentelemetry/api'"],
    ],
  },
  {
    says: 'only kernel/hooks imports tapable',
    broken: libraryOnlyIn(/^tapable$/, /^kernel\/hooks\//),
    mutants: [['plugins/a/service.ts', "import { SyncHook } from 'tapable'"]],
  },
  {
    says: 'only kernel/store imports sql.js',
    broken: libraryOnlyIn(/^sql\.js(\/|$)/, /^kernel\/store\//),
    mutants: [['kernel/a.ts', "await import('sql.js')"]],
  },
  {
    says: 'only the JSON files of the kit and the text files of the plugin files import lowdb',
    broken: libraryOnlyIn(/^lowdb(\/|$)/, /^(kernel\/kit\/json-file|plugins\/platform\/files\/text-file)\.ts$/),
    mutants: [
      ['kernel/config/a.ts', "import { Low } from 'lowdb'"],
      ['kernel/store/a.ts', "import { JSONFile } from 'lowdb/node'"],
    ],
  },
  {
    says: 'foreign modules are imported by importModule and Node modules statically, for the code cache',
    broken: s =>
      /^(kernel|plugins)\//.test(s.file) && !s.file.endsWith('/import-module.ts')
        ? [...used(s, /\bimport\((?!\s*['"])/g), ...(s.text.match(/\bimport\(\s*['"]node:[\w/]+/g) ?? [])]
        : [],
    mutants: [
      ['plugins/a/service.ts', "const { request } = await import('node:http')"],
      ['plugins/a/service.ts', 'await import(file)'],
      ['kernel/a.ts', 'await import(url.href)'],
    ],
  },
  {
    says: 'plugins read records by kernel calls, never by its table',
    // In the whole text: SQL stands in strings, whose contents `code` does not have.
    broken: s => (inside(s.file, 'plugins') ? (s.text.match(/kernel_record\w*/gi) ?? []) : []),
    mutants: [
      ['plugins/a/service.ts', "kernel.db.rows('SELECT id FROM kernel_record WHERE kind = ?', [kind])"],
      ['plugins/a/deep/b.ts', 't.run(`DELETE FROM own WHERE id NOT IN (SELECT id FROM KERNEL_RECORD)`)'],
      ['plugins/a/b.ts', "const table = 'kernel_record_source'"],
    ],
  },
  {
    says: 'plugins use the kit for pages, secret references, front matter, queues, pruning and alarms',
    // In the whole text: regular expressions and SQL have contents that `code` does not have.
    broken: s => (inside(s.file, 'plugins') ? BY_HAND.flatMap(way => s.text.match(way) ?? []) : []),
    mutants: [
      ['plugins/a/b.ts', "const place = JSON.parse(Buffer.from(cursor, 'base64url').toString())"],
      ['plugins/a/b.ts', "const cursor = Buffer.from(JSON.stringify([filter, id])).toString('base64url')"],
      ['plugins/a/b.ts', 'const REFERENCE = /^env:[A-Z]+$/'],
      ['plugins/a/b.ts', 'const REFERENCE = /^(?:vault|env):(.+)$/'],
      ['plugins/a/b.ts', "if (reference.startsWith('env:')) return env[reference.slice(4)]"],
      ['plugins/a/b.ts', 'const HEAD = /^---[ \\t]*\\n([\\s\\S]*?)\\n---/'],
      ['plugins/a/b.ts', '#last: Promise<unknown> = Promise.resolve()'],
      ['plugins/a/b.ts', 'const done = this.#last.then(work)\nthis.#last = done.catch(() => {})'],
      [
        'plugins/a/b.ts',
        '`DELETE FROM a_past WHERE seq <= (SELECT seq FROM a_past ORDER BY seq DESC LIMIT 1 OFFSET ?)`',
      ],
      ['plugins/a/b.ts', '`DELETE FROM a_past WHERE seq NOT IN (SELECT seq FROM a_past ORDER BY seq DESC LIMIT ?)`'],
      ['plugins/a/b.ts', 'export class DueHeap {}'],
      ['plugins/a/b.ts', 'const text = (max: number) => v.pipe(v.string(), v.trim(), v.maxLength(max))'],
      ['plugins/a/b.ts', 'const named = JSON.stringify(id.slice(0, 80))'],
    ],
  },
  {
    says: 'plugins read program output and bodies by processes/output and kernel/kit/whole.ts, which bound it',
    // In the whole text: the name of an event stands in a string, whose contents `code` does not have.
    broken: s =>
      inside(s.file, 'plugins') && !inside(s.file, 'plugins/platform/processes/output') && !(s.file in READS)
        ? (s.text.match(
            /\.on\(\s*['"]data['"]|\bfor await \(const (?:chunk|part|piece|bytes|line)\b|\bcreateInterface\b/g,
          ) ?? [])
        : [],
    mutants: [
      ['plugins/a/b.ts', "child.stdout.on('data', chunk => chunks.push(chunk))"],
      ['plugins/a/b.ts', 'for await (const chunk of response.body) bytes += chunk.length'],
      ['plugins/a/b.ts', "import { createInterface } from 'node:readline'"],
    ],
  },
  {
    says: 'the kernel knows no domain noun',
    broken: s => {
      if (!inside(s.file, 'kernel')) return []
      const words = `${s.code} ${s.comments}`.match(/[A-Za-z]+/g) ?? []
      const parts = words.flatMap(word => word.split(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/))
      return parts.map(part => part.toLowerCase().replace(/s$/, '')).filter(part => NOUNS.has(part))
    },
    mutants: [
      ['kernel/a.ts', 'const openSessions = 1'],
      ['kernel/a.ts', '// asks the agent'],
      ['kernel/a.ts', 'const job_id = 1'],
    ],
  },
  {
    says: 'LIMIT has no bare parameter, because SQLite replans it at each bind: LIMIT +?',
    broken: s => (inside(s.file, 'kernel') || inside(s.file, 'plugins') ? (s.text.match(/\bLIMIT \?/g) ?? []) : []),
    mutants: [['plugins/a/b.ts', "const sql = 'SELECT a FROM b LIMIT ?'"]],
  },
  {
    says: 'no file is over 600 lines without a reason in its first line',
    broken: s => {
      const lines = s.text.split('\n')
      return lines.length > 601 && !/^\/[/*].*\b(lines|long|one table|generated)\b/i.test(lines[0] ?? '')
        ? [`${lines.length} lines`]
        : []
    },
    mutants: [['cli/a.ts', 'x\n'.repeat(602)]],
  },
  {
    says: 'a file exports at most 14 values, except api, index and entry files',
    broken: s => {
      if (!/^(kernel|plugins|cli)\//.test(s.file) || /\/(api|index)\.ts$|version-one\/\w+\.ts$/.test(s.file)) return []
      if (ENTRIES.includes(s.file) || s.file === 'plugins/desk/settings/keys.ts') return []
      const values = used(s, /^export (?:async )?(?:const|function|class|let)\b/gm).length
      return values > 14 ? [`${values} values`] : []
    },
    mutants: [['plugins/a/b.ts', 'export const a = 1\n'.repeat(15)]],
  },
  {
    says: 'console and process.exit, .on, .std*, .chdir are used only in cli, scripts, examples and bench',
    broken: s =>
      inside(s.file, 'kernel') || inside(s.file, 'plugins') || inside(s.file, 'schemas')
        ? [
            ...used(
              s,
              /\bconsole\.\w+|\bprocess\.(exit|on|once|std\w+|chdir|env)\b|\b(exit|on|once|chdir|env)\b[^{}]*\}\s*=\s*process\b/g,
            ),
            ...imports(s).filter(to => to === 'node:process'),
          ]
        : [],
    mutants: [
      ['kernel/a.ts', 'console.log(1)'],
      ['plugins/a/b.ts', 'process.exit(1)'],
      ['kernel/a.ts', 'process.env.HOME'],
      ['kernel/a.ts', "process.on('SIGTERM', stop)"],
      ['kernel/a.ts', 'const { env } = process'],
      ['kernel/a.ts', "import { env } from 'node:process'"],
    ],
  },
  {
    says: 'pid, kill and platform are used only in plugins/platform/processes and kernel/lock',
    broken: s =>
      inside(s.file, 'kernel') || inside(s.file, 'plugins')
        ? /^(plugins\/platform\/processes\/|kernel\/lock\/|kernel\/store\/exclusion\.ts$)/.test(s.file)
          ? []
          : used(s, /\bprocess\.(pid|kill|platform)\b/g)
        : [],
    mutants: [
      ['kernel/host/a.ts', 'process.kill(1)'],
      ['plugins/a/b.ts', 'process.pid'],
    ],
  },
  {
    says: 'time and random values come from the kernel, processes from plugins/platform/processes',
    broken: s =>
      (inside(s.file, 'kernel') && !/^kernel\/(clock|ids|inspect|lock\/file-lock)\.ts$/.test(s.file)) ||
      (inside(s.file, 'plugins') && !inside(s.file, 'plugins/platform/processes'))
        ? [
            ...used(
              s,
              /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.now\b|(?<![.\w])set(?:Timeout|Interval)\s*\(/g,
            ),
            ...imports(s).filter(to => /^node:(child_process|timers)/.test(to)),
          ]
        : [],
    mutants: [
      ['plugins/a/b.ts', 'const now = Date.now()'],
      ['kernel/http/a.ts', 'setTimeout(f, 1)'],
      ['plugins/a/b.ts', "import { spawn } from 'node:child_process'"],
    ],
  },
  {
    says: 'git is called only by kernel/kit/git, which blocks programs that a repository names',
    broken: s =>
      /^(kernel|plugins|cli|client)\//.test(s.file) && !inside(s.file, 'kernel/kit/git')
        ? (s.text.match(/(?:[[(]\s*|\b(?:argv|command|file): )['"]git['"]\s*[,\])]|\bexec\w*\(\s*['"]git /g) ?? [])
        : [],
    mutants: [
      ['plugins/a/b.ts', "const argv = ['git', ...args]"],
      ['cli/a.ts', "execFile('git', args)"],
      ['cli/a.ts', "exec('git status', { cwd })"],
    ],
  },
  {
    says: 'files are opened by kernel/kit/read-file.ts or by a file on the list with reasons',
    broken: s => {
      if (!/^(kernel|plugins|cli|client|packages|examples\/agents)\//.test(s.file)) return []
      return s.file in OPENS ? [] : opensOf(s)
    },
    mutants: [
      ['plugins/a/b.ts', "import { readFile } from 'node:fs/promises'"],
      ['kernel/a.ts', "import { existsSync, openSync as look } from 'node:fs'"],
      ['cli/a.ts', "import {\n  createReadStream,\n  statSync,\n} from 'node:fs'"],
      ['kernel/a.ts', "import fs, { constants } from 'node:fs'\nfs.promises.open(file)"],
      ['plugins/a/b.ts', "import * as fs from 'fs'\nfs.readFileSync(file)"],
      ['plugins/a/b.ts', "import fs from 'fs/promises'\nawait fs.copyFile(a, b)"],
      ['plugins/a/b.ts', "const { open } = await import('node:fs/promises')"],
      ['examples/agents/a.ts', "import { writeFileSync } from 'node:fs'"],
    ],
  },
  {
    says: 'a default export is a plugin',
    broken: s =>
      isCode(s) && !/^plugins\/[^/]+\/[^/]+\/index\.ts$/.test(s.file) ? used(s, /^export default\b/gm) : [],
    mutants: [['kernel/a.ts', 'export default 1']],
  },
  {
    says: 'comments cite only documents of the repository',
    broken: s => citesOf(s.comments),
    mutants: [
      ['kernel/a.ts', '/** The error body (Behaviour 1.8). */'],
      ['schemas/a.ts', '// A page of a list, Specification A.'],
      ['plugins/a/b.ts', '/** Places for processes (decision 7). */'],
      ['kernel/store/a.ts', '/**\n * The log (Storage, "The mirror").\n */'],
      ['cli/a.ts', '/**\n * The defaults of Behaviour\n * 7.2.\n */'],
    ],
  },
]

for (const rule of rules) {
  test(rule.says, () => {
    const broken = tree.flatMap(source => rule.broken(source).map(what => `${source.file}: ${what}`))
    assert.equal([...new Set(broken)], [])
    for (const [file, text] of rule.mutants) {
      assert.ok(
        rule.broken(readSource(file, text)).length > 0,
        `${file} with ${JSON.stringify(text.slice(0, 60))} breaks it`,
      )
    }
  })
}

test('the console imports only packages, itself and client types, and builds no markup from text', () => {
  const sources = readdirSync(path.join(root, CONSOLE), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map(entry => path.relative(root, path.join(entry.parentPath, entry.name)))
    .map(file => readSource(file, readFileSync(path.join(root, file), 'utf8')))
  const broken = (source: Source) => [
    ...imports(source).filter(to => !isPackage(to) && !inside(to, CONSOLE) && to !== 'client/operations.ts'),
    ...source.valueImports.map(to => target(source, to)).filter(to => inside(to, 'client')),
    ...(source.text.match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc/gi) ??
      []),
  ]
  assert.ok(sources.length > 20)
  assert.equal(
    sources.flatMap(source => broken(source).map(what => `${source.file}: ${what}`)),
    [],
  )
  for (const text of [
    "import { routes } from '../../../../../client/operations.js'",
    "import { ok } from '../../../../../kernel/plugin.js'",
    'const view = <p dangerouslySetInnerHTML={{ __html: text }} />',
  ])
    assert.ok(broken(readSource(`${CONSOLE}/core/a.tsx`, text)).length > 0, text)
})

/** Files that one folder holds at most: what nobody takes in at a glance hides what is in it. */
const MOST_FILES = 25
/** Folders with more, and why. */
const CROWDED: Readonly<Record<string, string>> = {
  'test/bench': 'one file for each program that is measured',
}
const crowdedOf = (sources: readonly Source[]) => {
  const files = new Map<string, number>()
  for (const { file } of sources) files.set(path.dirname(file), (files.get(path.dirname(file)) ?? 0) + 1)
  return [...files].flatMap(([folder, count]) => (count > MOST_FILES ? [folder] : []))
}

test(`a folder has at most ${MOST_FILES} source files`, () => {
  assert.equal(crowdedOf(tree).sort(), Object.keys(CROWDED).sort(), 'an exception that is no longer needed goes')
  const many = (count: number) => Array.from({ length: count }, (_, n) => readSource(`plugins/a/b/c${n}.ts`, ''))
  assert.equal(crowdedOf([...many(MOST_FILES), readSource('plugins/a/b/d/e.ts', '')]), [])
  assert.equal(crowdedOf(many(MOST_FILES + 1)), ['plugins/a/b'])
})

test('the README of a plugin names each of its rooms, and that of a group each of its plugins', () => {
  const rooms = new Set(tree.flatMap(({ file }) => /^plugins\/[^/]+\/[^/]+\/[^/]+(?=\/)/.exec(file)?.[0] ?? []))
  const isUntold = (folder: string) =>
    !readFileSync(path.join(root, path.dirname(folder), 'README.md'), 'utf8').includes(`\`${path.basename(folder)}/`)
  const untold = [...[...rooms].filter(isUntold), ...plugins.map(({ folder }) => folder).filter(isUntold)]
  assert.equal(untold, [])
})

test('the README of a folder of the kernel names each of its files', () => {
  const folders = ['kernel', 'kernel/host', 'kernel/http', 'kernel/records', 'kernel/store']
  const untold = folders.flatMap(folder => {
    const readme = readFileSync(path.join(root, folder, 'README.md'), 'utf8')
    const own = tree.filter(({ file }) => path.dirname(file) === folder)
    return own.map(({ file }) => file).filter(file => !readme.includes(`\`${path.basename(file)}\``))
  })
  assert.equal(untold, [])
})

test('tests and documents cite only documents of the repository', () => {
  const documents = ['README.md', ...['docs', 'kernel', 'plugins', 'examples'].flatMap(documentsBelow)]
  const broken = [
    ...sourcesBelow(root, 'test').map(({ file, comments }) => [file, comments] as const),
    ...documents.map(file => [file, readFileSync(path.join(root, file), 'utf8')] as const),
  ].flatMap(([file, prose]) => citesOf(prose).map(cite => `${file}: ${cite}`))
  assert.equal(broken, [])
})

test('each file on the list of direct file access still opens files', () => {
  const idle = Object.keys(OPENS).filter(
    file => !tree.some(source => source.file === file && opensOf(source).length > 0),
  )
  assert.equal(idle, [])
})

/** Files that name routes of other plugins by their paths, and why. The command line and code for authors are clients. */
const NAMES_ROUTES: Readonly<Record<string, string>> = {
  'plugins/access/identity/own.ts': 'judges requests by the path of their route',
  'plugins/delivery/extensions/load/code.ts': 'holds the routes of an extension to their own prefix',
  'plugins/delivery/extensions/manifest/permissions.ts': 'maps a method of an extension to the request that answers it',
  'plugins/delivery/subprocess-host/host-api.ts': 'sends files of an extension to the route of attachments',
  'plugins/desk/settings/sections/facts.ts': 'links of a reply, which clients follow',
  'plugins/reach/telemetry/traces/traces.ts': 'leaves out requests that are not traced',
  'plugins/work/sessions/lifecycle/catalog.ts': 'judges the undo of a change by the path of its route',
}
const isClient = (file: string) => /\/(?:cli|authoring|session-commands)\/|[/-]commands?\.ts$|\/setup\.ts$/.test(file)
const templatesOf = new Map(inTree.map(({ name, surface }) => [name, (surface.routes ?? []).map(route => route.path)]))

/** Paths of routes in the strings of a plugin that are not its own. A placeholder stands for one segment. */
function foreignRoutes({ file, text }: Source): string[] {
  const plugin = plugins.find(({ folder }) => inside(file, folder))
  if (!plugin || isClient(file)) return []
  const own = templatesOf.get(plugin.name) ?? []
  const code = text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
  const named = [...code.matchAll(/['"`](?:[A-Z]+ )?(\/api\/\w[^'"`]*)/g)].map(([, path = '']) =>
    path
      .replace(/\$?\{[^{}]*\}/g, '{}')
      .replace(/[?$\s].*$/s, '')
      .replace(/\/$/, ''),
  )
  return named.filter(path => {
    const pattern = path.split('/').map(part => (part === '{}' ? '[^/]+' : part.replaceAll('{}', '.+')))
    const isOwn = new RegExp(`^${pattern.join('/')}(?:/|$)`)
    return !own.some(template => isOwn.test(template))
  })
}

test('a plugin names no route of another plugin by its path', () => {
  const naming = tree.filter(source => foreignRoutes(source).length > 0)
  const broken = naming.flatMap(source =>
    source.file in NAMES_ROUTES ? [] : foreignRoutes(source).map(path => `${source.file}: ${path}`),
  )
  assert.equal(broken, [])
  const idle = Object.keys(NAMES_ROUTES).filter(file => !naming.some(source => source.file === file))
  assert.equal(idle, [], 'an exception that is no longer needed goes')
  const foreign = (text: string, file = 'plugins/agents/skills/a.ts') => foreignRoutes(readSource(file, text))
  assert.equal(foreign("ask({ method: 'PATCH', url: '/api/settings/keys' })"), ['/api/settings/keys'])
  // biome-ignore lint/suspicious/noTemplateCurlyInString: source text
  assert.equal(foreign('ask(`/api/agents/${encodeURIComponent(name)}?workspace=${id}`)'), ['/api/agents/{}'])
  assert.equal(foreign("const route = 'GET /api/bundles/catalog'"), ['/api/bundles/catalog'])
  assert.equal(foreign("const own = '/api/skills/{name}/content'"), [])
  assert.equal(foreign("client.request('GET', '/api/settings/keys')", 'plugins/agents/skills/commands.ts'), [])
})

/** The folders of the kernel and of the base plugins, which do parts of its work. */
const CORE = [
  'kernel',
  ...plugins.filter(({ name }) => base.some(one => one.name === name)).map(({ folder }) => folder),
]
/** Lines of code of the core. */
const MOST_LINES = 16_544

const linesOfCode = ({ text }: Source) =>
  text.split('\n').filter(line => line.trim() !== '' && !/^\s*(\/\/|\/\*|\*)/.test(line)).length
const sizeOf = (sources: readonly Source[]) =>
  sources
    .filter(({ file }) => CORE.some(folder => inside(file, folder)))
    .reduce((sum, source) => sum + linesOfCode(source), 0)

test(`the kernel and the base plugins have at most ${MOST_LINES} lines of code`, () => {
  const size = sizeOf(tree)
  assert.ok(size <= MOST_LINES, `${size} lines`)
})

test('the folders of the core exist, and only lines of code count', () => {
  for (const folder of CORE) assert.ok(existsSync(path.join(root, folder)), folder)
  const sources = [
    readSource('kernel/contract/a.ts', '// a\n\nconst x = 1\n/** b */\n'),
    readSource('plugins/platform/events/b.ts', 'x\ny\n'),
    readSource('plugins/work/tasks/c.ts', 'z\n'),
  ]
  assert.is(sizeOf(sources), 3)
})

const arrowsOf = (sources: readonly Source[], specifiers: (source: Source) => readonly string[]) =>
  sources.flatMap(source =>
    specifiers(source).flatMap(specifier =>
      specifier.startsWith('.') ? [[source.file, target(source, specifier)] as const] : [],
    ),
  )
const valueCircles = (sources: readonly Source[]) =>
  circlesOf(graphOf(arrowsOf(sources, ({ valueImports }) => valueImports)))

/** A folder of the kernel, or a file of its root. */
const roomOf = (file: string) => (file.split('/').length > 2 ? file.split('/').slice(0, 2).join('/') : file)
const roomCircles = (sources: readonly Source[]) =>
  circlesOf(
    graphOf(
      arrowsOf(
        sources.filter(({ file }) => inside(file, 'kernel')),
        ({ imports }) => imports,
      ).map(([from, to]) => [roomOf(from), roomOf(to)]),
    ),
  )

test('value imports have no cycle', () => {
  assert.equal(valueCircles(tree), [])
  const b = (text: string) => [
    readSource('plugins/a/a.ts', "import { b } from './b.js'"),
    readSource('plugins/a/b.ts', text),
  ]
  assert.equal(valueCircles(b("export { a } from './a.js'")), [['plugins/a/a.ts', 'plugins/a/b.ts']])
  assert.equal(valueCircles(b("import { type A, a } from './a.js'")), [['plugins/a/a.ts', 'plugins/a/b.ts']])
  assert.equal(valueCircles(b("import './a.js'")), [['plugins/a/a.ts', 'plugins/a/b.ts']])
  assert.equal(valueCircles(b("import { type A } from './a.js'")), [])
  assert.equal(valueCircles(b("const a = () => import('./a.js')")), [])
})

test('imports between folders of the kernel have no cycle, type imports included', () => {
  assert.equal(roomCircles(tree), [])
  const mutant = [
    readSource('kernel/store/a.ts', "import type { B } from '../host/b.js'"),
    readSource('kernel/host/b.ts', "import { c } from '../c.js'"),
    readSource('kernel/c.ts', "import type { A } from './store/a.js'"),
  ]
  assert.equal(roomCircles(mutant), [['kernel/c.ts', 'kernel/host', 'kernel/store']])
})

test.run()
