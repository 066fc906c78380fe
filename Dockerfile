# A replacement for Toxiproxy's image, described in docs/how-to/containers.md. Build: docker build -t slowlane .
# The version of Swift with which the tests run; a test compares it.
FROM swift:6.3.1-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends libsqlite3-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# Dependencies change less often than sources. Their versions are resolved here: the repository has no Package.resolved.
COPY Package.swift ./
RUN swift package resolve
COPY . .
RUN swift build -c release --product slowlane --static-swift-stdlib \
    && strip .build/release/slowlane \
    && scripts/lib/image-root .build/release/slowlane /image

FROM scratch
COPY --from=build /image/ /
EXPOSE 8474
ENV LOG_LEVEL=info
# The image has no shell and no curl. With -token, SLOWLANE_TOKEN must contain the same token.
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s CMD ["/toxiproxy-cli", "-h", "http://127.0.0.1:8474", "list"]
ENTRYPOINT ["/toxiproxy"]
CMD ["-host=0.0.0.0"]
