import { execFile } from 'node:child_process'
import { realpath, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { Fault } from '../../kernel/contract/errors.js'
import { CliFault, exitCodes, usageFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { pick } from '../show/cells.js'
import { workspaceReference } from '../workspace-context.js'
import { ForeignFileError, filesBelow, readForeign, type SourceFile, sourceOf } from './foreign-file.js'
import { type Importer, importers, programs } from './importers.js'
import type { Around, Found, Left, Wanted } from './plan.js'
import { Targets } from './targets.js'

/** Time limit of `crontab -l` in milliseconds, and maximum bytes of its output. */
const CRONTAB_MS = 10_000
const CRONTAB_BYTES = 4 * 1024 * 1024

/** The action for one planned item. */
interface Row {
  action: 'create' | 'update' | 'unchanged' | 'failed'
  readonly kind: Wanted['kind']
  readonly name: string
  readonly file: string
  readonly line: number
  note: string
}

/** `svc import <source>`: reads files of other programs with the rights of the caller. */
export async function importSource(context: LocalContext): Promise<number | undefined> {
  const { args, out } = context
  if (args.source === undefined) return listSources(context)
  const around = await aroundOf(context)
  const { importer, files, broken, from } = await sourceFiles(context, args.source, around)
  const plan = importer.plan(files, { ...around, workspaceRoots: await rootsOf(context, files) })
  const found = { ...plan, left: [...broken, ...plan.left] }
  const dry = context.options['dry-run'] === true
  const rows = await carryOut(context, found, around, dry)
  const failed = rows.filter(({ action }) => action === 'failed').length
  if (out.json) {
    const { left, inPlace } = found
    out.value({
      source: from,
      importer: importer.name,
      dry_run: dry,
      counts: countsOf(rows, found),
      items: rows,
      left,
      in_place: inPlace,
    })
  } else show(context, importer, rows, found, dry)
  return failed > 0 ? exitCodes.failed : undefined
}

async function aroundOf({ io, options, client }: LocalContext): Promise<Around> {
  const { username, homedir } = userInfo()
  const named = options.workspace
  const reference = typeof named === 'string' ? workspaceReference(named, io.cwd) : undefined
  const about = reference && (await client.request('GET', `/api/workspaces/${encodeURIComponent(reference)}`))
  return {
    env: io.env,
    user: username,
    userHome: io.env.HOME || homedir,
    timezone: io.env.TZ || new Intl.DateTimeFormat().resolvedOptions().timeZone,
    now: Date.now(),
    platform: process.platform,
    hasUsers: options.system === true,
    ...(typeof options.agent === 'string' && { agent: options.agent }),
    ...(about !== undefined && {
      workspaceId: String(pick(about, 'workspace.id')),
      rootDir: String(pick(about, 'workspace.root_dir')),
    }),
  }
}

/** Folders of these files that are workspaces: their `.mcp.json` is read in place. */
async function rootsOf({ client }: LocalContext, files: readonly SourceFile[]): Promise<string[]> {
  const roots: string[] = []
  for (const { path } of files.filter(file => basename(file.path) === '.mcp.json')) {
    const folder = dirname(path)
    const real = await realpath(folder)
    const reply = await client.request('GET', `/api/workspaces?path=${encodeURIComponent(real)}`)
    if ((pick(reply, 'workspaces') as { root_dir: string }[]).some(({ root_dir: root }) => root === real))
      roots.push(folder)
  }
  return roots
}

interface Source extends Files {
  readonly importer: Importer
  readonly from: string
}

interface Files {
  readonly files: readonly SourceFile[]
  /** Unreadable files of a folder; the others are still imported. */
  readonly broken: readonly Left[]
}

/** The files of a source, which is the name of a program or a path. */
async function sourceFiles({ options, io }: LocalContext, source: string, around: Around): Promise<Source> {
  const wanted = options.format === undefined ? undefined : importerOf(String(options.format))
  const program = programs.find(({ name }) => name === source)
  const path = resolve(io.cwd, source)
  if (program) {
    const importer = wanted ?? importerOf(program.importer)
    if (program.name === 'crontab') return { importer, files: await crontab(io.env), broken: [], from: 'crontab -l' }
    const paths = program.paths(around)
    const all = await Promise.all(paths.map(at => filesOf(at, importer)))
    const found = { files: all.flatMap(({ files }) => files), broken: all.flatMap(({ broken }) => broken) }
    if (found.files.length + found.broken.length > 0) return { importer, ...found, from: source }
    throw missing(`${program.name} has no files here: ${paths.join(', ')}`)
  }
  const about = await stat(path).catch(() => undefined)
  if (!about) throw missing(`not found: ${path} is neither a file, a folder nor a known program`)
  const text = about.isDirectory() ? '' : ((await namedFile(path))?.text ?? '')
  const importer = wanted ?? importers.find(({ takes }) => takes(path, text))
  if (!importer)
    throw usageFault(
      `the format of ${path} is not recognized; give it with --format: ${importers.map(({ name }) => name).join(', ')}`,
      `svc import ${quoted(source)} --format ${importers[0]?.name}`,
    )
  return { importer, ...(await filesOf(path, importer)), from: path }
}

const missing = (what: string) =>
  new CliFault('import_source_missing', what, { exit: exitCodes.notFound, next: 'svc import' })

function importerOf(name: string): Importer {
  const importer = importers.find(one => one.name === name)
  if (importer) return importer
  throw usageFault(`--format is one of ${importers.map(one => one.name).join(', ')}`, 'svc import --help')
}

/** A file, or the files of a folder that an importer reads. */
async function filesOf(path: string, importer: Importer): Promise<Files> {
  const about = await stat(path).catch(() => undefined)
  if (!about) return { files: [], broken: [] }
  const files: SourceFile[] = []
  const broken: Left[] = []
  const take = async (file: string, read: () => Promise<SourceFile | undefined>) => {
    try {
      const source = await read()
      if (source) files.push(source)
    } catch (error) {
      if (!(error instanceof ForeignFileError)) throw error
      broken.push({ file, line: error.line, what: basename(file), why: error.message })
    }
  }
  if (!about.isDirectory()) await take(path, () => readForeign(path))
  else
    for (const name of importer.below ?? []) {
      const at = join(path, name)
      const isFolder = await stat(at).then(
        found => found.isDirectory(),
        () => false,
      )
      if (!isFolder) await take(at, () => readForeign(at))
      else
        await take(at, async () => {
          for (const file of await filesBelow(at, importer.wants ?? (() => true)))
            await take(file, () => readForeign(file))
          return undefined
        })
    }
  return { files, broken }
}

/** A file named by the person, without which the import ends. */
async function namedFile(path: string): Promise<SourceFile | undefined> {
  try {
    return await readForeign(path)
  } catch (error) {
    if (!(error instanceof ForeignFileError)) throw error
    throw new CliFault('import_file_unreadable', `${path}: ${error.message}`, {
      exit: exitCodes.invalid,
      next: 'name another file: svc import',
    })
  }
}

/** The crontab of the person; empty without one. */
function crontab(env: LocalContext['io']['env']): Promise<SourceFile[]> {
  return new Promise((done, reject) => {
    const options = {
      env: { ...env, LC_ALL: 'C' },
      timeout: CRONTAB_MS,
      maxBuffer: CRONTAB_BYTES,
      encoding: 'buffer' as const,
    }
    execFile('crontab', ['-l'], options, (error, stdout, stderr) => {
      const said = stderr.toString().trim()
      if (error && !/no crontab for/i.test(said)) {
        const why = 'code' in error && error.code === 'ENOENT' ? 'there is no program crontab' : said || error.message
        reject(
          new CliFault('import_crontab_failed', `crontab -l failed: ${why}`, {
            next: 'svc import /etc/crontab --system',
          }),
        )
      } else done(error ? [] : [sourceOf('crontab', stdout)])
    })
  })
}

/** Compares each planned item with the existing ones and applies it, except in a dry run. A failure affects only its own item. */
async function carryOut(
  { client, home, options, progress }: LocalContext,
  { wanted }: Found,
  around: Around,
  dry: boolean,
): Promise<Row[]> {
  const { workspaceId: id, rootDir } = around
  const workspace = id !== undefined && rootDir !== undefined ? { workspace: { id, rootDir } } : {}
  const targets = new Targets({ client, home, enable: options.enable === true, ...workspace })
  const rows: Row[] = []
  // An agent must exist before the jobs that run it.
  const ordered = [...wanted].sort((a, b) => Number(b.kind === 'agent') - Number(a.kind === 'agent'))
  for (const one of ordered) {
    const { kind, name, file, line, notes } = one
    const row: Row = { action: 'failed', kind, name, file, line, note: notes.join('; ') }
    rows.push(row)
    try {
      const step = await targets.step(one)
      if (!dry && step.action !== 'unchanged') await progress.during(`importing ${name}`, step.carry)
      row.action = step.action
      if (step.action === 'unchanged') row.note = ''
    } catch (error) {
      row.note = refusalOf(error)
    }
  }
  return rows
}

/** Reason for which one item could not be made. @throws errors that end the import: no daemon, or a bug */
function refusalOf(error: unknown): string {
  if (error instanceof CliFault && error.exit !== exitCodes.noDaemon)
    return [error.message, error.more.next].filter(Boolean).join('; ')
  if (error instanceof Fault || error instanceof ForeignFileError) return error.message
  throw error
}

function countsOf(rows: readonly Row[], { left, inPlace }: Found) {
  const count = (action: Row['action']) => rows.filter(row => row.action === action).length
  return {
    create: count('create'),
    update: count('update'),
    unchanged: count('unchanged'),
    failed: count('failed'),
    left: left.length,
    in_place: inPlace.length,
  }
}

function show(
  { out, io, args }: LocalContext,
  importer: Importer,
  rows: readonly Row[],
  found: Found,
  dry: boolean,
): void {
  const from = (location: { readonly file: string; readonly line: number }) =>
    `${nearPath(location.file, io.cwd)}${location.line > 0 ? `:${location.line}` : ''}`
  const words = dry
    ? { create: 'create', update: 'update', unchanged: 'unchanged', failed: 'failed' }
    : { create: 'created', update: 'updated', unchanged: 'unchanged', failed: 'failed' }
  if (rows.length > 0)
    out.table(
      rows.map(row => ({ ...row, action: words[row.action], from: from(row) })),
      [
        { header: 'ACTION', path: 'action' },
        { header: 'KIND', path: 'kind' },
        { header: 'NAME', path: 'name' },
        { header: 'FROM', path: 'from' },
        { header: 'NOTE', path: 'note', below: true },
      ],
    )
  const lists = [
    ['Not carried over', found.left],
    ['Read in place', found.inPlace],
  ] as const
  for (const [title, list] of lists) {
    if (list.length === 0) continue
    if (rows.length > 0 || list === found.inPlace) out.line('')
    out.line(out.color('bold', title))
    out.table(
      list.map(one => ({ ...one, from: from(one) })),
      [
        { header: 'WHAT', path: 'what' },
        { header: 'FROM', path: 'from' },
        { header: 'WHY', path: 'why', below: true },
      ],
    )
  }
  if (rows.length + found.left.length + found.inPlace.length > 0) out.line('')
  for (const line of summary(rows, found, dry, importer, String(args.source))) out.line(line)
}

function summary(rows: readonly Row[], found: Found, dry: boolean, { name }: Importer, source: string): string[] {
  const counts = countsOf(rows, found)
  const parts = [
    [counts.create, dry ? 'to create' : 'created'],
    [counts.update, dry ? 'to update' : 'updated'],
    [counts.unchanged, 'unchanged'],
    [counts.failed, 'failed'],
    [counts.left, 'not carried over'],
    [counts.in_place, 'read in place'],
  ] as const
  const said = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  const lines = [said.length === 0 ? `nothing to import: there is no ${name} entry` : said.join(', ')]
  const jobs = rows.filter(({ kind, action }) => kind === 'job' && action === 'create')
  if (jobs.length > 0 && !dry)
    lines.push(
      'The jobs are disabled, so that nothing runs twice. Remove them where they',
      'come from, then enable them:',
      `  svc automation jobs enable ${jobs[0]?.name}`,
    )
  if (dry && counts.create + counts.update > 0)
    lines.push(`Nothing was changed. Import it: svc import ${quoted(source)}`)
  return lines
}

/** A source quoted for a shell. */
const quoted = (text: string) => (/^[\w@%+:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

const nearPath = (file: string, cwd: string): string => {
  const near = isAbsolute(file) ? relative(cwd, file) : file
  return near.startsWith('../../') ? `…/${basename(file)}` : near || file
}

/** `svc import` alone: lists the programs whose files exist. */
async function listSources(context: LocalContext): Promise<undefined> {
  const { out } = context
  const around = await aroundOf(context)
  const found: { source: string; path: string; importer: string }[] = []
  for (const { name, importer, paths } of programs) {
    for (const path of paths(around))
      if (
        await stat(path).then(
          () => true,
          () => false,
        )
      )
        found.push({ source: name, importer, path })
  }
  if (
    await crontab(around.env).then(
      files => files.length > 0,
      () => false,
    )
  )
    found.push({ source: 'crontab', importer: 'crontab', path: 'crontab -l' })
  if (out.json)
    return out.value({
      sources: found,
      formats: importers.map(({ name, summary }) => ({ name, summary })),
    }) as undefined
  out.table(
    found,
    [
      { header: 'SOURCE', path: 'source' },
      { header: 'FORMAT', path: 'importer' },
      { header: 'PATH', path: 'path', below: true },
    ],
    'no files of other programs were found; give a path: svc import <path> --dry-run',
  )
  if (found.length > 0) out.line(`See what would be imported: svc import ${found[0]?.source} --dry-run`)
  return undefined
}
