/// Saturating arithmetic for quantities from input or that grow with time, so that callers need no overflow checks.
extension Int64 {
    /// Returns the sum, or the nearest representable value.
    @inlinable @inline(__always)
    package func addingSaturating(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other > 0 ? .max : .min) : sum
    }

    /// Returns the difference, or the nearest representable value.
    @inlinable @inline(__always)
    package func subtractingSaturating(_ other: Int64) -> Int64 {
        let (difference, overflows) = subtractingReportingOverflow(other)
        return overflows ? (other > 0 ? .min : .max) : difference
    }

    /// Returns the product, or the nearest representable value.
    @inlinable @inline(__always)
    package func multipliedSaturating(by other: Int64) -> Int64 {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        return overflows ? ((self < 0) == (other < 0) ? .max : .min) : product
    }

    /// Returns `self * factor / divisor`, rounded towards zero, or the nearest representable value. The product may
    /// need 128 bits.
    ///
    /// - Precondition: `divisor` is positive.
    @inlinable @inline(__always)
    package func scaledSaturating(by factor: Int64, over divisor: Int64) -> Int64 {
        let (product, overflows) = multipliedReportingOverflow(by: factor)
        if !overflows { return product / divisor }
        let magnitude = self.magnitude.multipliedFullWidth(by: factor.magnitude)
        let isNegative = (self < 0) != (factor < 0)
        // The quotient exceeds 64 bits.
        if magnitude.high >= divisor.magnitude { return isNegative ? .min : .max }
        let quotient = divisor.magnitude.dividingFullWidth(magnitude).quotient
        if quotient > UInt64(Int64.max) { return isNegative ? .min : .max }
        return isNegative ? -Int64(quotient) : Int64(quotient)
    }

    /// Returns the nearest value within `range`.
    @inlinable @inline(__always)
    package func clamped(to range: ClosedRange<Int64>) -> Int64 {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}
