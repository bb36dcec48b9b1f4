import gt from 'semver/functions/gt.js'
import gte from 'semver/functions/gte.js'
import valid from 'semver/functions/valid.js'

/** Whether `version` is at least `floor`; a pre-release is below its release. False unless both are semantic versions. */
export const isAtLeast = (version: string, floor: string): boolean =>
  valid(version) !== null && valid(floor) !== null && gte(version, floor)

/** Whether the offered version is later than the installed one. False unless both are semantic versions. */
export const isNewer = (offered: string | undefined, installed: string | undefined): boolean =>
  offered !== undefined &&
  installed !== undefined &&
  valid(offered) !== null &&
  valid(installed) !== null &&
  gt(offered, installed)
