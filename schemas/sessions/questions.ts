/** What a question to a person shows: what would be run, and what would change. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'

/** What would become of one file. */
export const QuestionDiff = v.object({
  path: v.string(),
  is_new: v.optional(v.boolean()),
  /** Lines in all, those that are hidden included. */
  added: Integer,
  removed: Integer,
  /** Hunks of a unified diff, without the lines that name the file. */
  patch: v.string(),
  /** Lines of the diff that `patch` leaves out. */
  hidden_lines: Integer,
})
export type QuestionDiff = v.InferOutput<typeof QuestionDiff>

/** What of a question is left out; the interaction itself has all of it while it is pending. */
export const QuestionHidden = v.object({
  /** Files whose diff is left out altogether. */
  files: Integer,
  /** Lines of diffs, those of the files that are left out included. */
  lines: Integer,
  /** Characters of the command, the title and of long lines. */
  characters: Integer,
})
export type QuestionHidden = v.InferOutput<typeof QuestionHidden>

/** Members of an interaction that say what it is about. */
export const questionMembers = {
  command: v.optional(v.string()),
  paths: v.optional(v.array(v.string())),
  /** Those of the paths that lie outside of the workspace. */
  outside: v.optional(v.array(v.string())),
  diffs: v.optional(v.array(QuestionDiff)),
  hidden: v.optional(QuestionHidden),
}
