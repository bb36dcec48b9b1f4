import { basename, join } from 'node:path'
import { importClaude } from './claude.js'
import { importCrontab } from './crontab.js'
import type { SourceFile } from './foreign-file.js'
import { importMcpFiles } from './mcp-servers.js'
import { importCodex, importGemini, importOpenClaw } from './other-agents.js'
import type { Around, Found } from './plan.js'
import { importAcpRegistry, importMcpRegistry } from './registries.js'

/** An importer of one kind of files: their detection, and a pure function that plans the import. */
export interface Importer {
  readonly name: string
  readonly summary: string
  /** Whether a path named by a person is of this kind. `text`: content of a file, empty for a folder. */
  readonly takes: (path: string, text: string) => boolean
  /** Relative paths of the files in a folder named by a person; subfolders are scanned. Default: none. */
  readonly below?: readonly string[]
  /** Filter by name for the files of these folders. Default: all. */
  readonly wants?: (name: string) => boolean
  readonly plan: (files: readonly SourceFile[], around: Around) => Found
}

/** All importers; the first one that accepts a path reads it. */
export const importers: readonly Importer[] = [
  {
    name: 'crontab',
    summary: 'jobs of a crontab',
    takes: path =>
      /(?:^|[._-])cron(?:tab)?s?(?:$|[._-])/i.test(basename(path)) || /\/cron(?:tabs|\.d)\/[^/]+$/.test(path),
    plan: importCrontab,
  },
  {
    name: 'claude',
    summary: 'hooks, agents, commands, skills and MCP servers of Claude Code',
    takes: path => /(?:^|\/)\.(?:agents|claude(?:\.json|\/settings(?:\.local)?\.json)?)$/.test(path),
    below: ['settings.json', 'settings.local.json', 'agents', 'commands', 'skills'],
    wants: name => name.endsWith('.md'),
    plan: importClaude,
  },
  {
    name: 'codex',
    summary: 'MCP servers of Codex',
    takes: path => /(?:^|\/)\.codex$|\.toml$/i.test(path),
    below: ['config.toml'],
    plan: importCodex,
  },
  {
    name: 'gemini',
    summary: 'MCP servers of the Gemini CLI',
    takes: path => /(?:^|\/)\.gemini(?:\/settings\.json)?$/.test(path),
    below: ['settings.json'],
    plan: importGemini,
  },
  {
    name: 'openclaw',
    summary: 'jobs, skills and MCP servers of OpenClaw',
    takes: path => /(?:^|\/)(?:\.openclaw|openclaw\.json|cron\/jobs\.json)$/.test(path),
    below: ['openclaw.json', join('cron', 'jobs.json'), 'skills', join('workspace', 'skills')],
    wants: name => name === 'SKILL.md',
    plan: importOpenClaw,
  },
  {
    name: 'mcp-registry',
    summary: 'MCP servers of the MCP registry (server.json)',
    takes: (path, text) => basename(path) === 'server.json' || /"registryType"|server\.schema\.json/.test(text),
    plan: importMcpRegistry,
  },
  {
    name: 'acp-registry',
    summary: 'agents of the ACP registry, as providers',
    takes: (path, text) => basename(path) === 'agent.json' || /"distribution"\s*:\s*\{/.test(text),
    plan: importAcpRegistry,
  },
  {
    name: 'mcp',
    summary: 'MCP servers of Claude, VS Code, Cursor, Windsurf, Zed and others',
    takes: path => /\.jsonc?$/i.test(path),
    plan: importMcpFiles,
  },
]

/** A program whose files can be imported by its name. */
export interface Program {
  readonly name: string
  readonly importer: string
  /** Places of its files; a folder means the files in it that the importer reads. */
  readonly paths: (around: Pick<Around, 'env' | 'userHome' | 'platform'>) => readonly string[]
}

/** Settings folder of desktop programs. */
const settingsOf = ({ env, userHome, platform }: Pick<Around, 'env' | 'userHome' | 'platform'>) =>
  platform === 'darwin'
    ? join(userHome, 'Library', 'Application Support')
    : env.XDG_CONFIG_HOME || join(userHome, '.config')

/** Programs by name with their files. `crontab` has no file: its program prints it. */
export const programs: readonly Program[] = [
  { name: 'crontab', importer: 'crontab', paths: () => [] },
  {
    name: 'claude',
    importer: 'claude',
    paths: ({ env, userHome }) => [env.CLAUDE_CONFIG_DIR || join(userHome, '.claude'), join(userHome, '.claude.json')],
  },
  {
    name: 'claude-desktop',
    importer: 'mcp',
    paths: around => [join(settingsOf(around), 'Claude', 'claude_desktop_config.json')],
  },
  {
    name: 'codex',
    importer: 'codex',
    paths: ({ env, userHome }) => [join(env.CODEX_HOME || join(userHome, '.codex'), 'config.toml')],
  },
  { name: 'gemini', importer: 'gemini', paths: ({ userHome }) => [join(userHome, '.gemini', 'settings.json')] },
  { name: 'openclaw', importer: 'openclaw', paths: ({ userHome }) => [join(userHome, '.openclaw')] },
  { name: 'vscode', importer: 'mcp', paths: around => [join(settingsOf(around), 'Code', 'User', 'mcp.json')] },
  { name: 'cursor', importer: 'mcp', paths: ({ userHome }) => [join(userHome, '.cursor', 'mcp.json')] },
  {
    name: 'windsurf',
    importer: 'mcp',
    paths: ({ userHome }) => [join(userHome, '.codeium', 'windsurf', 'mcp_config.json')],
  },
  { name: 'zed', importer: 'mcp', paths: around => [join(settingsOf(around), 'zed', 'settings.json')] },
]
