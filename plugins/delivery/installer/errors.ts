import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { clip, shown } from '../../../kernel/kit/text.js'
import { defineErrors } from '../../../kernel/plugin.js'

/** Why an entry of an archive, folder or commit is refused; `details.reason` of `extension_content_refused`. */
export type Refusal =
  | 'parent_path'
  | 'absolute_path'
  | 'drive_letter'
  | 'backslash'
  | 'odd_name'
  | 'git_settings'
  | 'link'
  | 'hard_link'
  | 'submodule'
  | 'special_file'
  | 'name_collision'
  | 'duplicate'
  | 'too_deep'
  | 'too_long'
  | 'too_many'
  | 'too_large'
  | 'bomb'
  | 'header'
  | 'extended_header'
  | 'truncated'
  | 'trailing_data'
  | 'not_an_archive'
  | 'changing'
  | 'empty'

export const InstallErrors = defineErrors({
  extension_content_refused: { status: 422, message: 'the content of the extension is not safe to install' },
  extension_archive_digest_mismatch: {
    status: 422,
    message: 'the digest differs from the expected one; nothing was installed',
    next: 'compare the digest with the one that its author published',
  },
  extension_unverified_policy_blocked: {
    status: 422,
    message: 'extensions.trust.allow_unverified is off: give the digest as checksum',
    next: command('extension install', placeholder('source'), '--checksum', placeholder('digest')),
  },
  extension_checksum_unverified: {
    status: 422,
    message:
      'the origin of the files cannot be verified: give the digest that its author published as checksum, or allow it unverified',
    next: command('extension install', placeholder('source'), '--allow-unverified'),
  },
  extension_git_unavailable: { status: 422, message: 'git is not installed', next: 'install git and try again' },
  extension_source_invalid: { status: 422, message: 'the source of the extension is not valid' },
  extension_source_unreachable: { status: 422, message: 'the source of the extension could not be read' },
  extension_catalog_mismatch: {
    status: 422,
    message: 'the archive differs from the extension that the catalog describes',
    next: command('marketplace refresh'),
  },
  extension_update_failed: {
    status: 422,
    message: 'the new version did not start; the one before stays installed',
    next: command('extension logs', placeholder('name')),
  },
  extension_changed_name: { status: 422, message: 'the update contains another extension' },
  extension_not_installed: { status: 404, message: 'no such extension is installed', next: command('extension list') },
  extension_installed: {
    status: 409,
    message: 'the extension is installed already',
    next: command('extension update'),
  },
  extension_not_updatable: { status: 422, message: 'the extension was not installed by svc: change its folder' },
})

/** The next step, where the content itself is not at fault. */
const NEXT: Partial<Record<Refusal, string>> = {
  not_an_archive: 'name a folder, or an archive in the format .tar.gz',
  truncated: 'get the archive again: a part of it is missing',
  changing: 'try again when nothing writes to the folder',
}

/** The fault of refused content; `entry` is the path as its source wrote it. */
export function refused(reason: Refusal, text: string, entry?: string) {
  const where = entry === undefined ? '' : `${shown(entry)}: `
  return InstallErrors.extension_content_refused(`the extension is refused: ${where}${text}`, {
    details: { reason, ...(entry === undefined ? {} : { entry: clip(entry, 200) }) },
    next: NEXT[reason] ?? 'ask the author of the extension for one without it',
  })
}
